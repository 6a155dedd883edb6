// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifdef KOKKOSNN_JAX_DEVICE
#include "jax.hpp"
#endif
#include "options.hpp"

#include <KokkosNN/kokkosnn.h>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

// The functions of kokkosnn.h for Python: arrays as tensors, dictionaries as options and masks, errors as exceptions. A
// further operator is a line of functions.def; kokkosnn/_operators.py has what users see.

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
      {"float64", KOKKOSNN_F64},   {"float32", KOKKOSNN_F32},         {"float16", KOKKOSNN_F16},
      {"bfloat16", KOKKOSNN_BF16}, {"bool", KOKKOSNN_BOOL},           {"int8", KOKKOSNN_I8},
      {"int16", KOKKOSNN_I16},     {"int32", KOKKOSNN_I32},           {"int64", KOKKOSNN_I64},
      {"uint8", KOKKOSNN_U8},      {"uint16", KOKKOSNN_U16},          {"uint32", KOKKOSNN_U32},
      {"uint64", KOKKOSNN_U64},    {"float8_e4m3fn", KOKKOSNN_F8E4M3}};
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
  constexpr std::uint8_t float8_e4m3fn = 10;  // kDLFloat8_e4m3fn of DLPack 1.1, which older headers lack
  if (is_scalar && dtype.code == float8_e4m3fn && dtype.bits == 8) return dtype_named("float8_e4m3fn");
  throw nb::type_error(("kokkosnn: arrays of DLPack's type " + std::to_string(int(dtype.code)) + " of " + bits +
                        " bits are not supported")
                           .c_str());
}

/// The type of a buffer's elements in native order; nothing of others, which NumPy has to be asked for.
std::optional<kokkosnn_dtype> dtype_of_buffer(const char* format, Py_ssize_t itemsize) {
  if (format == nullptr || format[0] == '\0' || format[1] != '\0') return std::nullopt;
  const auto of_size = [itemsize](kokkosnn_dtype one, kokkosnn_dtype two, kokkosnn_dtype four, kokkosnn_dtype eight) {
    return itemsize == 1 ? one : itemsize == 2 ? two : itemsize == 4 ? four : eight;
  };
  switch (format[0]) {
    case 'e':
      return KOKKOSNN_F16;
    case 'f':
      return KOKKOSNN_F32;
    case 'd':
      return KOKKOSNN_F64;
    case '?':
      return KOKKOSNN_BOOL;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return of_size(KOKKOSNN_I8, KOKKOSNN_I16, KOKKOSNN_I32, KOKKOSNN_I64);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return of_size(KOKKOSNN_U8, KOKKOSNN_U16, KOKKOSNN_U32, KOKKOSNN_U64);
    default:
      return std::nullopt;
  }
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

// --- DLPack's exchange table, which tensors of PyTorch 2.11 and newer have ---

/// A table of C functions that a class of arrays has as `__dlpack_c_exchange_api__` (DLPack 1.3). They return 0, or
/// another number with an exception of Python set.
struct ExchangeTable {
  std::uint32_t major;
  std::uint32_t minor;
  const ExchangeTable* older;
  void (*allocate)();
  void (*own)();
  void (*make)();
  int (*view)(void* array, nb::dlpack::dltensor* tensor);  ///< or null
  int (*stream)(int device_type, std::int32_t device_index, void** stream);
};
constexpr std::uint32_t exchange_version = 1;

/// The table of a class; null where there is none that is known here.
const ExchangeTable* find_exchange_table(PyTypeObject* type) {
  constexpr const char* name = "dlpack_exchange_api";
  const nb::object capsule =
      nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__"));
  PyErr_Clear();
  if (!capsule.is_valid() || PyCapsule_IsValid(capsule.ptr(), name) == 0) return nullptr;
  const auto* table = static_cast<const ExchangeTable*>(PyCapsule_GetPointer(capsule.ptr(), name));
  while (table != nullptr && table->major > exchange_version) table = table->older;
  return table != nullptr && table->major == exchange_version && table->view != nullptr ? table : nullptr;
}

/// The table of an object's class, which is looked for once: a few classes are remembered.
const ExchangeTable* exchange_table_of(nb::handle array) {
  constexpr std::size_t most = 16;
  static std::vector<std::pair<PyTypeObject*, const ExchangeTable*>> known;  // the interpreter's lock is held
  PyTypeObject* const type = Py_TYPE(array.ptr());
  for (const auto& [known_type, table] : known) {
    if (known_type == type) return table;
  }
  const ExchangeTable* const table = find_exchange_table(type);
  if (known.size() < most) {
    Py_INCREF(reinterpret_cast<PyObject*>(type));  // no other class gets its address
    known.emplace_back(type, table);
  }
  return table;
}

nb::dlpack::dltensor viewed(const ExchangeTable& table, nb::handle array) {
  nb::dlpack::dltensor view{};
  if (table.view(array.ptr(), &view) != 0) nb::raise_python_error();
  return view;
}

void require_rank(std::size_t rank) {
  if (rank <= KOKKOSNN_MAX_RANK) return;
  throw nb::value_error(("kokkosnn: arrays have rank 0 to 8, but this one has rank " + std::to_string(rank)).c_str());
}

/// A C function's argument, made from Python's object, which it keeps alive.
template <class Argument>
class FromPython;

/// An array, or None: one of NumPy by its buffer (DLPack knows neither ml_dtypes' types nor arrays that must not be
/// written), where that has none, of ml_dtypes' types, by its attributes, which take longer; all others by DLPack.
/// Nothing is copied.
template <>
class FromPython<const kokkosnn_tensor*> {
 public:
  explicit FromPython(nb::handle array) {
    if (array.is_none()) return;
    m_exists = true;
    if (PyObject_CheckBuffer(array.ptr()) != 0 && take_buffer(array)) return;
    if (const ExchangeTable* const table = exchange_table_of(array)) {
      take_view(*table, array);
    } else {
      nb::hasattr(array, "ctypes") ? take_attributes(array) : take_dlpack(array);  // only NumPy's arrays have that
    }
  }

  const kokkosnn_tensor* get() const { return m_exists ? &m_tensor : nullptr; }

 private:
  bool take_buffer(nb::handle array) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      return false;
    }
    const auto dtype = dtype_of_buffer(buffer.format, buffer.itemsize);
    const bool fits  = dtype.has_value() && buffer.ndim <= KOKKOSNN_MAX_RANK;
    if (fits) {
      m_tensor.data  = buffer.buf;
      m_tensor.dtype = *dtype;
      m_tensor.rank  = buffer.ndim;
      m_owner        = nb::borrow(array);
      for (int k = 0; k < buffer.ndim; ++k) {
        m_tensor.extents[k] = buffer.shape[k];
        m_tensor.strides[k] = buffer.strides[k];  // in bytes
      }
    }
    const auto itemsize = static_cast<std::int64_t>(buffer.itemsize);
    PyBuffer_Release(&buffer);
    for (std::int32_t k = 0; k < m_tensor.rank; ++k)
      set_axis(static_cast<std::size_t>(k), m_tensor.extents[k], m_tensor.strides[k], itemsize);
    return fits;
  }

  /// Throws, so not while a buffer is held.
  void set_axis(std::size_t k, std::int64_t extent, std::int64_t bytes, std::int64_t itemsize) {
    m_tensor.extents[k] = extent;
    m_tensor.strides[k] = bytes / itemsize;
    if (bytes % itemsize != 0 && extent > 1) {
      throw nb::value_error("kokkosnn: an array's strides must be multiples of its elements' size");
    }
  }

  void take_attributes(nb::handle array) {
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
      set_axis(k, nb::cast<std::int64_t>(shape[k]), nb::cast<std::int64_t>(strides[k]), itemsize);
    }
    m_owner = nb::borrow(array);
  }

  void take_view(const ExchangeTable& table, nb::handle array) {
    const nb::dlpack::dltensor view = viewed(table, array);
    require_rank(static_cast<std::size_t>(view.ndim));
    m_tensor.dtype = dtype_of(view.dtype);
    m_tensor.data  = static_cast<char*>(view.data) + view.byte_offset;
    m_tensor.rank  = view.ndim;
    for (int k = 0; k < view.ndim; ++k) {
      m_tensor.extents[k] = view.shape[k];
      m_tensor.strides[k] = view.strides[k];
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

/// The characters of a string of Python, which live as long as it does.
std::string_view text_of(nb::handle string) {
  Py_ssize_t size        = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(string.ptr(), &size);
  if (text == nullptr) nb::raise_python_error();
  return {text, static_cast<std::size_t>(size)};
}

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

/// Options, or a mask, from a dictionary of members that differ from the defaults.
template <class Struct>
class FromPython<const Struct*> {
 public:
  explicit FromPython(nb::handle members) : m_struct(defaults(static_cast<const Struct*>(nullptr))) {
    for (const auto& [name, value] : nb::cast<nb::dict>(members)) {
      const std::string_view text = text_of(name);
      Members member(text, value, m_arrays);
      list(m_struct, member);
      if (!member.is_done()) throw nb::type_error(("kokkosnn: there is no option " + std::string(text)).c_str());
    }
  }

  const Struct* get() const { return &m_struct; }

 private:
  Struct m_struct;
  std::vector<std::unique_ptr<TensorArgument>> m_arrays;
};

// --- arguments of NumPy ---

/// NumPy's class of arrays, if NumPy is loaded: nobody has an array before.
PyObject* class_of_numpy() {
  static PyObject* known = nullptr;  // the interpreter's lock is held
  if (known == nullptr) {
    const nb::object numpy = nb::steal(PyImport_GetModule(nb::str("numpy").ptr()));
    if (numpy.is_valid() && nb::hasattr(numpy, "ndarray")) known = nb::object(numpy.attr("ndarray")).release().ptr();
    PyErr_Clear();
  }
  return known;
}

bool is_of_class(nb::handle x, const void* type) { return static_cast<const void*>(Py_TYPE(x.ptr())) == type; }

/// True of an array of NumPy's own class, and of no class that is made from it.
bool is_numpy(nb::handle x) {
  const PyObject* const ndarray = class_of_numpy();
  return ndarray != nullptr && is_of_class(x, ndarray);
}

/// True if takes(x) is of all of a call's arguments, also those in dictionaries, but numbers and None.
template <class Takes>
bool takes_all_arrays(const nb::tuple& arguments, const Takes& takes) {
  const auto is_taken = [&](nb::handle x) {
    return x.is_none() || is_of_class(x, &PyLong_Type) || is_of_class(x, &PyFloat_Type) ||
           is_of_class(x, &PyBool_Type) || takes(x);
  };
  for (const nb::handle given : arguments) {
    if (!is_of_class(given, &PyDict_Type)) {
      if (!is_taken(given)) return false;
      continue;
    }
    for (const auto& [name, value] : nb::borrow<nb::dict>(given)) {
      if (!is_taken(value)) return false;
    }
  }
  return true;
}

/// True if a call's arrays are NumPy's own, also those in dictionaries, and there is one: nothing else has to be asked
/// then, which takes time.
bool are_numpy(const nb::tuple& arguments) {
  const PyObject* const ndarray = class_of_numpy();
  if (ndarray == nullptr) return false;
  bool has_array = false;
  return takes_all_arrays(arguments,
                          [&](nb::handle x) {
                            has_array |= is_of_class(x, ndarray);
                            return is_of_class(x, ndarray);
                          }) &&
         has_array;
}

/// Where a call on these arrays runs, (device kind, device index, stream) as Exec takes it, if they are of one class
/// with an exchange table, also those in dictionaries, and there is one: on the class's current stream of their device.
/// None otherwise, and where they are on several devices, which the caller complains of.
nb::object exchange_place(const nb::tuple& arguments) {
  const ExchangeTable* table = nullptr;
  nb::dlpack::device device{};
  const auto takes = [&](nb::handle x) {
    const ExchangeTable* const own = exchange_table_of(x);
    if (own == nullptr || (table != nullptr && table != own)) return false;
    const nb::dlpack::device of_x = viewed(*own, x).device;
    const bool is_first           = table == nullptr;
    if (is_first) device = of_x;
    table = own;
    return of_x.device_type == device.device_type && of_x.device_id == device.device_id;
  };
  if (!takes_all_arrays(arguments, takes) || table == nullptr) return nb::none();
  constexpr int cuda = 2, cuda_managed = 13;
  if (device.device_type == KOKKOSNN_DEVICE_HOST) return nb::make_tuple(device.device_type, 0, 0);
  void* stream = nullptr;
  if (table->stream(device.device_type, device.device_id, &stream) != 0) nb::raise_python_error();
  const int kind = device.device_type == cuda_managed ? cuda : device.device_type;
  return nb::make_tuple(kind, device.device_id, reinterpret_cast<std::uintptr_t>(stream));
}

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
  m.def("is_numpy", [](nb::handle x) { return is_numpy(x); }, nb::arg().none());
  m.def("are_numpy", &are_numpy);
  m.def("exchange_place", &exchange_place);
  m.def("jax_handlers", [] {
    nb::dict handlers;
    nb::str platform("");
#ifdef KOKKOSNN_JAX_DEVICE
    for (const auto& [name, handler] : jax_handlers()) {
      handlers[nb::str(name.data(), name.size())] = nb::capsule(handler);
    }
    platform = nb::str(jax_platform().data(), jax_platform().size());
#endif
    return nb::make_tuple(platform, handlers);
  });

#define KOKKOSNN_FUNCTION(name) def(m, #name, kokkosnn_##name);
#include "functions.def"
#undef KOKKOSNN_FUNCTION
}
