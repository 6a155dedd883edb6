// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "jax.hpp"

#include "options.hpp"

#include <KokkosNN/kokkosnn.h>

#include <xla/ffi/api/ffi.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// The functions of kokkosnn.h as handlers of XLA's foreign function interface. Argument k of a C function comes in
// attributes, as kokkosnn/_jax.py writes them: "a<k>" is the place of a tensor, i for buffer i of the inputs and -1 - i
// for buffer i of the results; "a<k>_<member>" is a number of a struct, and "t<k>_<member>" the place of its tensor, or
// of a number that is known when the program runs. A tensor without an attribute is NULL.

namespace ffi = xla::ffi;

namespace {

constexpr kokkosnn_device_kind device_kind = KOKKOSNN_JAX_DEVICE;  // CMake determines it
constexpr bool is_on_host                  = device_kind == KOKKOSNN_DEVICE_HOST;

kokkosnn_dtype dtype_of(ffi::DataType type) {
  constexpr std::pair<ffi::DataType, kokkosnn_dtype> types[] = {
      {ffi::DataType::F64, KOKKOSNN_F64},   {ffi::DataType::F32, KOKKOSNN_F32},   {ffi::DataType::F16, KOKKOSNN_F16},
      {ffi::DataType::BF16, KOKKOSNN_BF16}, {ffi::DataType::PRED, KOKKOSNN_BOOL}, {ffi::DataType::S8, KOKKOSNN_I8},
      {ffi::DataType::S16, KOKKOSNN_I16},   {ffi::DataType::S32, KOKKOSNN_I32},   {ffi::DataType::S64, KOKKOSNN_I64},
      {ffi::DataType::U8, KOKKOSNN_U8},     {ffi::DataType::U16, KOKKOSNN_U16},   {ffi::DataType::U32, KOKKOSNN_U32},
      {ffi::DataType::U64, KOKKOSNN_U64}};
  for (const auto& [known, dtype] : types) {
    if (known == type) return dtype;
  }
  throw std::invalid_argument("kokkosnn: arrays of XLA's type " + std::to_string(int(type)) + " are not supported");
}

kokkosnn_tensor tensor_of(const ffi::AnyBuffer& buffer) {
  const auto extents = buffer.dimensions();
  if (extents.size() > KOKKOSNN_MAX_RANK) {
    throw std::invalid_argument("kokkosnn: arrays have rank 0 to 8, but this one has rank " +
                                std::to_string(extents.size()));
  }
  return kokkosnn_row_major(buffer.untyped_data(), dtype_of(buffer.element_type()),
                            static_cast<std::int32_t>(extents.size()), extents.begin());
}

/// The integer in a buffer of the host: one, or two words of 32 bits, the lower one first.
template <class T>
T integer_in(std::string_view name, const kokkosnn_tensor& tensor) {
  const auto is = [&](kokkosnn_dtype dtype, std::int32_t rank) { return tensor.dtype == dtype && tensor.rank == rank; };
  if constexpr (is_on_host) {
    if (is(KOKKOSNN_I32, 0)) return static_cast<T>(*static_cast<const std::int32_t*>(tensor.data));
    if (is(KOKKOSNN_U32, 0)) return static_cast<T>(*static_cast<const std::uint32_t*>(tensor.data));
    if (is(KOKKOSNN_I64, 0)) return static_cast<T>(*static_cast<const std::int64_t*>(tensor.data));
    if (is(KOKKOSNN_U64, 0)) return static_cast<T>(*static_cast<const std::uint64_t*>(tensor.data));
    if (sizeof(T) == 8 && is(KOKKOSNN_U32, 1) && tensor.extents[0] == 2) {
      const auto* words = static_cast<const std::uint32_t*>(tensor.data);
      return static_cast<T>(words[0] | static_cast<std::uint64_t>(words[1]) << 32);
    }
  }
  throw std::invalid_argument("kokkosnn: " + std::string(name) +
                              " must be a number, or on a host an array of one integer of 32 or 64 bits; one of 64 "
                              "bits may be two of uint32");
}

/// A call's buffers and attributes. Each attribute has to be asked for, so that none is passed in vain.
class Call {
 public:
  Call(ffi::RemainingArgs inputs, ffi::RemainingRets results, ffi::Dictionary attributes)
      : m_inputs(inputs), m_results(results), m_attributes(attributes) {}

  template <class T>
  std::optional<T> number(const std::string& name) {
    if (!m_attributes.contains(name)) return std::nullopt;
    ++m_found;
    if (const auto given = m_attributes.get<std::int64_t>(name); given.has_value()) return static_cast<T>(*given);
    const auto given = m_attributes.get<double>(name);
    if (!given.has_value() || !std::is_floating_point_v<T>) {
      throw std::invalid_argument("kokkosnn: attribute " + name + " has a wrong type");
    }
    return static_cast<T>(*given);
  }

  /// The tensor that an attribute names, which lives as long as the call.
  const kokkosnn_tensor* tensor(const std::string& name) {
    const auto place = number<std::int64_t>(name);
    if (!place) return nullptr;
    const auto index = static_cast<std::size_t>(*place < 0 ? -1 - *place : *place);
    if (index >= (*place < 0 ? m_results.size() : m_inputs.size())) {
      throw std::invalid_argument("kokkosnn: attribute " + name + " names no buffer");
    }
    m_tensors.push_back(*place < 0 ? tensor_of(**m_results.get<ffi::AnyBuffer>(index))
                                   : tensor_of(*m_inputs.get<ffi::AnyBuffer>(index)));
    return &m_tensors.back();
  }

  void require_all_found() const {
    if (m_found == m_attributes.size()) return;
    throw std::invalid_argument("kokkosnn: an option is not known, or is an array and must be a number");
  }

 private:
  ffi::RemainingArgs m_inputs;
  ffi::RemainingRets m_results;
  ffi::Dictionary m_attributes;
  std::list<kokkosnn_tensor> m_tensors;
  std::size_t m_found = 0;
};

/// Sets the members of argument k, a struct, that have attributes.
class Members {
 public:
  Members(Call& call, const std::string& k) : m_call(call), m_k(k) {}

  template <class T>
  Members& operator()(std::string_view name, T& member) {
    const std::string of = m_k + "_" + std::string(name);
    if (const auto given = m_call.number<T>("a" + of)) member = *given;
    if constexpr (std::is_integral_v<T>) {
      if (const kokkosnn_tensor* const tensor = m_call.tensor("t" + of)) member = integer_in<T>(name, *tensor);
    }
    return *this;
  }
  Members& operator()(std::string_view name, const kokkosnn_tensor*& member) {
    member = m_call.tensor("t" + m_k + "_" + std::string(name));
    return *this;
  }

 private:
  Call& m_call;
  std::string m_k;
};

/// A C function's argument k, made from the call.
template <class Argument>
class FromCall;

template <>
class FromCall<const kokkosnn_tensor*> {
 public:
  FromCall(Call& call, std::size_t k) : m_tensor(call.tensor("a" + std::to_string(k))) {}
  const kokkosnn_tensor* get() const { return m_tensor; }

 private:
  const kokkosnn_tensor* m_tensor;
};

template <class Struct>
class FromCall<const Struct*> {
 public:
  FromCall(Call& call, std::size_t k) : m_struct(defaults(static_cast<const Struct*>(nullptr))) {
    Members members(call, std::to_string(k));
    list(m_struct, members);
  }
  const Struct* get() const { return &m_struct; }

 private:
  Struct m_struct;
};

template <class... Arguments, std::size_t... I>
kokkosnn_status run(kokkosnn_status (*function)(const kokkosnn_exec*, Arguments...), const kokkosnn_exec& exec,
                    Call& call, std::index_sequence<I...>) {
  const std::tuple<FromCall<Arguments>...> arguments{FromCall<Arguments>(call, I)...};
  call.require_all_found();
  return function(&exec, std::get<I>(arguments).get()...);
}

template <class... Arguments>
ffi::Error run(kokkosnn_status (*function)(const kokkosnn_exec*, Arguments...), const kokkosnn_exec& exec,
               Call call) noexcept {
  try {
    const kokkosnn_status status = run(function, exec, call, std::index_sequence_for<Arguments...>{});
    if (status == KOKKOSNN_SUCCESS) return ffi::Error::Success();
    const ffi::ErrorCode code = status == KOKKOSNN_INVALID_ARGUMENT ? ffi::ErrorCode::kInvalidArgument
                                : status == KOKKOSNN_OUT_OF_MEMORY  ? ffi::ErrorCode::kResourceExhausted
                                                                    : ffi::ErrorCode::kInternal;
    return ffi::Error(code, kokkosnn_last_error());
  } catch (const std::exception& error) {
    return ffi::Error(ffi::ErrorCode::kInvalidArgument, error.what());
  }
}

/// On a GPU a call is enqueued on XLA's stream, and the runtime keeps an instance of Kokkos a stream.
template <auto function>
XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {
  if constexpr (is_on_host) {
    static const auto bound = ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attrs().To(
        [](ffi::RemainingArgs inputs, ffi::RemainingRets results, ffi::Dictionary attributes) {
          return run(function, {nullptr, device_kind, -1}, Call(inputs, results, attributes));
        });
    return bound->Call(frame);
  } else {
    static const auto bound =
        ffi::Ffi::Bind()
            .Ctx<ffi::PlatformStream<void*>>()
            .Ctx<ffi::DeviceOrdinal>()
            .RemainingArgs()
            .RemainingRets()
            .Attrs()
            .To([](void* stream, std::int32_t device, ffi::RemainingArgs inputs, ffi::RemainingRets results,
                   ffi::Dictionary attributes) {
              return run(function, {stream, device_kind, device}, Call(inputs, results, attributes));
            });
    return bound->Call(frame);
  }
}

}  // namespace

std::string_view jax_platform() { return is_on_host ? "cpu" : device_kind == KOKKOSNN_DEVICE_CUDA ? "CUDA" : "ROCM"; }

std::vector<std::pair<std::string_view, void*>> jax_handlers() {
  return {
#define KOKKOSNN_FUNCTION(name) {#name, reinterpret_cast<void*>(&handler<kokkosnn_##name>)},
#include "functions.def"
#undef KOKKOSNN_FUNCTION
  };
}
