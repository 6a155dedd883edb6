// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/kokkosnn.h>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

// The functions of kokkosnn.h for Python: arrays as tensors, dictionaries as options and masks, errors as exceptions. A
// further operator is a line at the end; kokkosnn/_operators.py has what users see.

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Where a call runs: (device kind, device index, stream) of Python.
struct Exec {
  kokkosnn_exec exec{nullptr, KOKKOSNN_DEVICE_DEFAULT, -1};

  explicit Exec(nb::handle place) {
    if (place.is_none()) return;
    const auto values = nb::cast<nb::tuple>(place);
    exec.device_kind  = nb::cast<std::int32_t>(values[0]);
    exec.device_index = nb::cast<std::int32_t>(values[1]);
    exec.stream       = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(values[2]));
  }
};

// --- arrays ---

kokkosnn_dtype dtype_named(std::string_view name) {
  constexpr std::pair<std::string_view, kokkosnn_dtype> names[] = {
      {"float64", KOKKOSNN_F64}, {"float32", KOKKOSNN_F32}, {"float16", KOKKOSNN_F16}, {"bfloat16", KOKKOSNN_BF16},
      {"bool", KOKKOSNN_BOOL},   {"int8", KOKKOSNN_I8},     {"int16", KOKKOSNN_I16},   {"int32", KOKKOSNN_I32},
      {"int64", KOKKOSNN_I64},   {"uint8", KOKKOSNN_U8},    {"uint16", KOKKOSNN_U16},  {"uint32", KOKKOSNN_U32},
      {"uint64", KOKKOSNN_U64}};
  for (const auto& [known, dtype] : names) {
    if (known == name) return dtype;
  }
  throw nb::type_error(("kokkosnn: arrays of " + std::string(name) + " are not supported").c_str());
}

kokkosnn_dtype dtype_of(nb::dlpack::dtype dtype) {
  using Code             = nb::dlpack::dtype_code;
  const std::string bits = std::to_string(int(dtype.bits));
  const bool is_scalar   = dtype.lanes == 1;
  if (is_scalar && dtype.code == std::uint8_t(Code::Float)) return dtype_named("float" + bits);
  if (is_scalar && dtype.code == std::uint8_t(Code::Bfloat)) return dtype_named("bfloat" + bits);
  if (is_scalar && dtype.code == std::uint8_t(Code::Int)) return dtype_named("int" + bits);
  if (is_scalar && dtype.code == std::uint8_t(Code::UInt)) return dtype_named("uint" + bits);
  if (is_scalar && dtype.code == std::uint8_t(Code::Bool)) return dtype_named("bool");
  throw nb::type_error(("kokkosnn: arrays of DLPack's type " + std::to_string(int(dtype.code)) + " of " + bits +
                        " bits are not supported")
                           .c_str());
}

/// NumPy computes a type's name anew each time, so it is asked for only where kind and size do not tell, of types that
/// are not its own.
kokkosnn_dtype dtype_of_numpy(nb::handle dtype, std::int64_t itemsize) {
  const std::string bits = std::to_string(8 * itemsize);
  const bool is_own      = nb::cast<int>(dtype.attr("isbuiltin")) == 1;
  switch (is_own ? nb::cast<std::string>(dtype.attr("kind"))[0] : ' ') {
    case 'f':
      return dtype_named("float" + bits);
    case 'i':
      return dtype_named("int" + bits);
    case 'u':
      return dtype_named("uint" + bits);
    default:
      return dtype_named(nb::cast<std::string>(dtype.attr("name")));
  }
}

void require_rank(std::size_t rank) {
  if (rank <= KOKKOSNN_MAX_RANK) return;
  throw nb::value_error(("kokkosnn: arrays have rank 0 to 8, but this one has rank " + std::to_string(rank)).c_str());
}

/// A C function's argument, made from Python's object, which it keeps alive.
template <class Argument>
class FromPython;

/// An array, or None: one of NumPy by its buffer (DLPack knows neither ml_dtypes' types nor arrays that must not be
/// written), all others by DLPack. Nothing is copied.
template <>
class FromPython<const kokkosnn_tensor*> {
 public:
  explicit FromPython(nb::handle array) {
    if (array.is_none()) return;
    m_exists = true;
    nb::hasattr(array, "ctypes") ? take_buffer(array) : take_dlpack(array);  // only NumPy's arrays have that
  }

  const kokkosnn_tensor* get() const { return m_exists ? &m_tensor : nullptr; }

 private:
  void take_buffer(nb::handle array) {
    const nb::object dtype = array.attr("dtype");
    if (!nb::cast<bool>(dtype.attr("isnative"))) {
      throw nb::type_error("kokkosnn: arrays of the other byte order are not supported");
    }
    const nb::object place = array.attr("__array_interface__")["data"][0];
    m_tensor.data          = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(place));
    const auto itemsize    = nb::cast<std::int64_t>(dtype.attr("itemsize"));
    m_tensor.dtype         = dtype_of_numpy(dtype, itemsize);
    const auto shape       = nb::cast<nb::tuple>(array.attr("shape"));
    const auto strides     = nb::cast<nb::tuple>(array.attr("strides"));
    require_rank(shape.size());
    m_tensor.rank = static_cast<std::int32_t>(shape.size());
    for (std::size_t k = 0; k < shape.size(); ++k) {
      const auto bytes    = nb::cast<std::int64_t>(strides[k]);
      m_tensor.extents[k] = nb::cast<std::int64_t>(shape[k]);
      m_tensor.strides[k] = bytes / itemsize;
      if (bytes % itemsize != 0 && m_tensor.extents[k] > 1) {
        throw nb::value_error("kokkosnn: an array's strides must be multiples of its elements' size");
      }
    }
    m_owner = nb::borrow(array);
  }

  void take_dlpack(nb::handle array) {
    if (!nb::hasattr(array, "__dlpack__")) {
      const std::string type = nb::cast<std::string>(nb::type_name(array.type()));
      throw nb::type_error(("kokkosnn: an array of NumPy, or one with __dlpack__, is expected, not " + type).c_str());
    }
    const auto device = nb::cast<nb::tuple>(array.attr("__dlpack_device__")());
    // Stream -1 tells a GPU's producer not to wait: the call runs on a stream that the caller chooses.
    nb::object capsule;
    constexpr int host = 1;
    if (nb::cast<int>(device[0]) != host) capsule = array.attr("__dlpack__")("stream"_a = -1);
    m_view = nb::cast<nb::ndarray<nb::ro>>(capsule.is_valid() ? nb::handle(capsule) : array, false);

    require_rank(m_view.ndim());
    m_tensor.dtype = dtype_of(m_view.dtype());
    m_tensor.data  = const_cast<void*>(m_view.data());
    m_tensor.rank  = static_cast<std::int32_t>(m_view.ndim());
    for (std::size_t k = 0; k < m_view.ndim(); ++k) {
      m_tensor.extents[k] = static_cast<std::int64_t>(m_view.shape(k));
      m_tensor.strides[k] = m_view.stride(k);
    }
  }

  bool m_exists = false;
  kokkosnn_tensor m_tensor{};
  nb::ndarray<nb::ro> m_view;
  nb::object m_owner;
};

using TensorArgument = FromPython<const kokkosnn_tensor*>;

// --- options and masks ---

/// Sets members of a struct by their names.
class Members {
 public:
  Members(std::string_view name, nb::handle value, std::vector<std::unique_ptr<TensorArgument>>& arrays)
      : m_name(name), m_value(value), m_arrays(arrays) {}

  template <class T>
  Members& operator()(std::string_view name, T& member) {
    if (name == m_name) {
      m_is_done = nb::try_cast(m_value, member);
      if (!m_is_done) throw nb::type_error(("kokkosnn: " + std::string(name) + " must be a number").c_str());
    }
    return *this;
  }
  Members& operator()(std::string_view name, const kokkosnn_tensor*& member) {
    if (name == m_name) {
      member    = m_arrays.emplace_back(std::make_unique<TensorArgument>(m_value))->get();
      m_is_done = true;
    }
    return *this;
  }

  bool is_done() const { return m_is_done; }

 private:
  std::string_view m_name;
  nb::handle m_value;
  std::vector<std::unique_ptr<TensorArgument>>& m_arrays;
  bool m_is_done = false;
};

kokkosnn_softmax_options defaults(const kokkosnn_softmax_options*) { return KOKKOSNN_SOFTMAX_OPTIONS_INIT; }
void list(kokkosnn_softmax_options& o, Members& members) {
  members("scale", o.scale)("axis", o.axis)("masked_row", o.masked_row)("determinism", o.determinism)("axes", o.axes);
}

kokkosnn_masked_softmax_options defaults(const kokkosnn_masked_softmax_options*) {
  return KOKKOSNN_MASKED_SOFTMAX_OPTIONS_INIT;
}
void list(kokkosnn_masked_softmax_options& o, Members& members) {
  members("scale", o.scale)("softcap", o.softcap)("sinks", o.sinks)("masked_row", o.masked_row)("determinism",
                                                                                                o.determinism);
}

kokkosnn_cross_entropy_options defaults(const kokkosnn_cross_entropy_options*) {
  return KOKKOSNN_CROSS_ENTROPY_OPTIONS_INIT;
}
void list(kokkosnn_cross_entropy_options& o, Members& members) {
  members("ignore_index", o.ignore_index)("label_smoothing", o.label_smoothing)("z_loss", o.z_loss);
  members("softcap", o.softcap)("gradient_scale", o.gradient_scale)("reduction", o.reduction);
  members("check_labels", o.check_labels)("determinism", o.determinism)("axis", o.axis);
  members("first_class", o.first_class)("classes", o.classes)("weighted_z_loss", o.weighted_z_loss);
}

kokkosnn_soft_cross_entropy_options defaults(const kokkosnn_soft_cross_entropy_options*) {
  return KOKKOSNN_SOFT_CROSS_ENTROPY_OPTIONS_INIT;
}
void list(kokkosnn_soft_cross_entropy_options& o, Members& members) {
  members("label_smoothing", o.label_smoothing)("gradient_scale", o.gradient_scale)("reduction", o.reduction);
  members("determinism", o.determinism)("axis", o.axis);
}

kokkosnn_rms_norm_options defaults(const kokkosnn_rms_norm_options*) { return KOKKOSNN_RMS_NORM_OPTIONS_INIT; }
void list(kokkosnn_rms_norm_options& o, Members& members) {
  members("epsilon", o.epsilon)("weight_offset", o.weight_offset)("axis", o.axis)("determinism", o.determinism);
}

kokkosnn_layer_norm_options defaults(const kokkosnn_layer_norm_options*) { return KOKKOSNN_LAYER_NORM_OPTIONS_INIT; }
void list(kokkosnn_layer_norm_options& o, Members& members) {
  members("epsilon", o.epsilon)("axis", o.axis)("determinism", o.determinism);
}

kokkosnn_attention_options defaults(const kokkosnn_attention_options*) { return KOKKOSNN_ATTENTION_OPTIONS_INIT; }
void list(kokkosnn_attention_options& o, Members& members) {
  members("scale", o.scale)("softcap", o.softcap)("sinks", o.sinks)("masked_row", o.masked_row)("axes", o.axes);
  members("precision", o.precision)("diagonal", o.diagonal);
}

kokkosnn_matmul_options defaults(const kokkosnn_matmul_options*) { return KOKKOSNN_MATMUL_OPTIONS_INIT; }
void list(kokkosnn_matmul_options& o, Members& members) {
  members("alpha", o.alpha)("beta", o.beta)("precision", o.precision)("determinism", o.determinism);
  members("provider", o.provider)("rows", o.rows)("row_offsets", o.row_offsets);
}

kokkosnn_rope_options defaults(const kokkosnn_rope_options*) { return KOKKOSNN_ROPE_OPTIONS_INIT; }
void list(kokkosnn_rope_options& o, Members& members) {
  members("form", o.form)("rotary_dims", o.rotary_dims)("sequence_axis", o.sequence_axis);
  members("position_offset", o.position_offset)("theta", o.theta)("position_scale", o.position_scale);
  members("check_positions", o.check_positions);
}

kokkosnn_gelu_options defaults(const kokkosnn_gelu_options*) { return KOKKOSNN_GELU_OPTIONS_INIT; }
void list(kokkosnn_gelu_options& o, Members& members) { members("form", o.form); }

kokkosnn_column_sums_options defaults(const kokkosnn_column_sums_options*) { return KOKKOSNN_COLUMN_SUMS_OPTIONS_INIT; }
void list(kokkosnn_column_sums_options& o, Members& members) { members("axis", o.axis); }

kokkosnn_segmented_options defaults(const kokkosnn_segmented_options*) { return KOKKOSNN_SEGMENTED_OPTIONS_INIT; }
void list(kokkosnn_segmented_options& o, Members& members) {
  members("scale", o.scale)("masked_row", o.masked_row)("check_offsets", o.check_offsets)("segments", o.segments);
}

kokkosnn_mask defaults(const kokkosnn_mask*) { return KOKKOSNN_MASK_INIT; }
void list(kokkosnn_mask& m, Members& members) {
  members("boolean", m.boolean)("bias", m.bias)("lengths", m.lengths)("alibi_slopes", m.alibi_slopes);
  members("causal_offset", m.causal_offset)("window_left", m.window_left)("window_right", m.window_right);
  members("window_offset", m.window_offset)("alibi_offset", m.alibi_offset)("is_causal", m.is_causal);
  members("has_window", m.has_window)("diagonal_offsets", m.diagonal_offsets)("row_scales", m.row_scales);
}

/// Options, or a mask, from a dictionary of members that differ from the defaults.
template <class Struct>
class FromPython<const Struct*> {
 public:
  explicit FromPython(nb::handle members) : m_struct(defaults(static_cast<const Struct*>(nullptr))) {
    for (const auto& [name, value] : nb::cast<nb::dict>(members)) {
      const auto text = nb::cast<std::string>(name);
      Members member(text, value, m_arrays);
      list(m_struct, member);
      if (!member.is_done()) throw nb::type_error(("kokkosnn: there is no option " + text).c_str());
    }
  }

  const Struct* get() const { return &m_struct; }

 private:
  Struct m_struct;
  std::vector<std::unique_ptr<TensorArgument>> m_arrays;
};

// --- functions ---

void raise(kokkosnn_status status) {
  const std::string message = kokkosnn_last_error();
  if (status == KOKKOSNN_INVALID_ARGUMENT) throw nb::value_error(message.c_str());
  if (status == KOKKOSNN_OUT_OF_MEMORY) {
    PyErr_SetString(PyExc_MemoryError, message.c_str());
    throw nb::python_error();
  }
  throw std::runtime_error(message);
}

template <class... Arguments, std::size_t... I>
void call(kokkosnn_status (*function)(const kokkosnn_exec*, Arguments...), const nb::args& given,
          std::index_sequence<I...>) {
  if (given.size() != sizeof...(I) + 1) throw nb::type_error("kokkosnn: a wrong number of arguments");
  const Exec exec(given[0]);
  const std::tuple<FromPython<Arguments>...> arguments{given[I + 1]...};
  kokkosnn_status status = KOKKOSNN_SUCCESS;
  {
    const nb::gil_scoped_release released;
    status = function(&exec.exec, std::get<I>(arguments).get()...);
  }
  if (status != KOKKOSNN_SUCCESS) raise(status);
}

/// name(exec, arguments...): arrays or None, masks and options as dictionaries, in the order of the C function.
template <class... Arguments>
void def(nb::module_& m, const char* name, kokkosnn_status (*function)(const kokkosnn_exec*, Arguments...)) {
  m.def(name, [function](const nb::args& given) { call(function, given, std::index_sequence_for<Arguments...>{}); });
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C functions of KokkosNN (kokkosnn.h) on arrays.";
  m.def("version", [] { return kokkosnn_version(); });
  m.def("configuration", [] { return kokkosnn_configuration(); });

  def(m, "softmax", kokkosnn_softmax);
  def(m, "log_softmax", kokkosnn_log_softmax);
  def(m, "logsumexp", kokkosnn_logsumexp);
  def(m, "softmax_backward", kokkosnn_softmax_backward);
  def(m, "log_softmax_backward", kokkosnn_log_softmax_backward);
  def(m, "logsumexp_backward", kokkosnn_logsumexp_backward);
  def(m, "masked_softmax", kokkosnn_masked_softmax);
  def(m, "masked_log_softmax", kokkosnn_masked_log_softmax);
  def(m, "masked_logsumexp", kokkosnn_masked_logsumexp);
  def(m, "masked_softmax_backward", kokkosnn_masked_softmax_backward);
  def(m, "masked_log_softmax_backward", kokkosnn_masked_log_softmax_backward);
  def(m, "masked_softmax_bias_backward", kokkosnn_masked_softmax_bias_backward);
  def(m, "masked_softmax_sinks_backward", kokkosnn_masked_softmax_sinks_backward);
  def(m, "cross_entropy", kokkosnn_cross_entropy);
  def(m, "cross_entropy_backward", kokkosnn_cross_entropy_backward);
  def(m, "cross_entropy_with_gradient", kokkosnn_cross_entropy_with_gradient);
  def(m, "cross_entropy_from_lse", kokkosnn_cross_entropy_from_lse);
  def(m, "soft_cross_entropy", kokkosnn_soft_cross_entropy);
  def(m, "soft_cross_entropy_with_gradient", kokkosnn_soft_cross_entropy_with_gradient);
  def(m, "rms_norm", kokkosnn_rms_norm);
  def(m, "layer_norm", kokkosnn_layer_norm);
  def(m, "rms_norm_backward", kokkosnn_rms_norm_backward);
  def(m, "layer_norm_backward", kokkosnn_layer_norm_backward);
  def(m, "add_rms_norm", kokkosnn_add_rms_norm);
  def(m, "add_layer_norm", kokkosnn_add_layer_norm);
  def(m, "add_rms_norm_backward", kokkosnn_add_rms_norm_backward);
  def(m, "add_layer_norm_backward", kokkosnn_add_layer_norm_backward);
  def(m, "column_sums", kokkosnn_column_sums);
  def(m, "segmented_softmax", kokkosnn_segmented_softmax);
  def(m, "segmented_log_softmax", kokkosnn_segmented_log_softmax);
  def(m, "segmented_logsumexp", kokkosnn_segmented_logsumexp);
  def(m, "segmented_softmax_backward", kokkosnn_segmented_softmax_backward);
  def(m, "segmented_log_softmax_backward", kokkosnn_segmented_log_softmax_backward);
  def(m, "segmented_logsumexp_backward", kokkosnn_segmented_logsumexp_backward);
  def(m, "attention", kokkosnn_attention);
  def(m, "attention_backward", kokkosnn_attention_backward);
  def(m, "attention_bias_backward", kokkosnn_attention_bias_backward);
  def(m, "attention_sinks_backward", kokkosnn_attention_sinks_backward);
  def(m, "graph_attention", kokkosnn_graph_attention);
  def(m, "graph_attention_backward", kokkosnn_graph_attention_backward);
  def(m, "merge_attention", kokkosnn_merge_attention);
  def(m, "packed_attention", kokkosnn_packed_attention);
  def(m, "packed_attention_backward", kokkosnn_packed_attention_backward);
  def(m, "matmul", kokkosnn_matmul);
  def(m, "matmul_backward", kokkosnn_matmul_backward);
  def(m, "rope", kokkosnn_rope);
  def(m, "rope_backward", kokkosnn_rope_backward);
  def(m, "add", kokkosnn_add);
  def(m, "mul", kokkosnn_mul);
  def(m, "cast", kokkosnn_cast);
  def(m, "silu", kokkosnn_silu);
  def(m, "silu_backward", kokkosnn_silu_backward);
  def(m, "gelu", kokkosnn_gelu);
  def(m, "gelu_backward", kokkosnn_gelu_backward);
  def(m, "swiglu", kokkosnn_swiglu);
  def(m, "swiglu_backward", kokkosnn_swiglu_backward);
  def(m, "geglu", kokkosnn_geglu);
  def(m, "geglu_backward", kokkosnn_geglu_backward);
}
