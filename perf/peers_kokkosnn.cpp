// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// KokkosNN behind a C interface, for peers.py: it runs on memory and on a stream that someone else owns, in a process
/// that holds the peers too.
///
/// Functions that can fail return nullptr or, on failure, what went wrong (valid until the next failure of the same
/// thread). Strings in and out end with a zero; those that come out of here live as long as what they describe.
#include "machine.hpp"
#include "problem.hpp"
#include "results.hpp"
#include "shapes.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace KokkosNN::Perf {
namespace {

/// The instance that enqueues on a stream of the caller's; on a host, where there is none, the default one.
Exec instance_on([[maybe_unused]] void* stream) {
#if defined(KOKKOS_ENABLE_CUDA)
  return Exec(static_cast<cudaStream_t>(stream));
#elif defined(KOKKOS_ENABLE_HIP)
  return Exec(static_cast<hipStream_t>(stream));
#else
  return Exec();
#endif
}

/// Addresses of an operator's tensors; it reads only those that it has a use for. peers_providers.py repeats them.
struct Tensors {
  const void* x;                ///< the input; of a gradient the forward call's result
  const void* dy;               ///< of a gradient
  const std::int64_t* labels;   ///< of a cross entropy: a class a row
  const std::int32_t* offsets;  ///< of ragged rows
  void* y;                      ///< the result; of a cross entropy the logits, over which their gradient is written
  void* loss;                   ///< of a cross entropy: a double where the logits are double, else a float
};

/// A call on memory of the caller's, made once and run often.
struct Prepared {
  std::function<void()> call;  ///< the public function, checks and planning in it
  std::function<void()> run;   ///< what the plan object enqueues; empty where there is none
  std::string plan;
};

/// A public function that has a plan object, and its arguments.
template <template <class...> class Plan, class Call, class... Views>
Prepared planned(Call call, const Exec& exec, const Views&... views) {
  const auto plan = std::make_shared<Plan<Exec, Views...>>(exec, views...);
  return {.call = [=] { call(exec, views...); }, .run = [=] { plan->run(); }, .plan = to_string(plan->row_plan())};
}

template <class T, class ViewLayout = Kokkos::LayoutRight>
auto matrix(T* data, const Case& shape) {
  return Kokkos::View<T**, ViewLayout, Exec, Kokkos::MemoryUnmanaged>(data, shape.rows, shape.cols);
}

template <class T>
auto vector(T* data, std::int64_t elements) {
  return Kokkos::View<T*, Exec, Kokkos::MemoryUnmanaged>(data, elements);
}

template <class T, class ViewLayout>
Prepared forward(const Exec& exec, const Case& shape, const Tensors& at) {
  const auto x = matrix<const T, ViewLayout>(static_cast<const T*>(at.x), shape);
  const auto y = matrix<T, ViewLayout>(static_cast<T*>(at.y), shape);
  if (shape.op == RowOperator::softmax)
    return planned<SoftmaxPlan>([](const auto&... arguments) { softmax(arguments...); }, exec, x, y);
  if (shape.op == RowOperator::log_softmax)
    return planned<LogSoftmaxPlan>([](const auto&... arguments) { log_softmax(arguments...); }, exec, x, y);
  const auto lse = vector(static_cast<T*>(at.y), shape.rows);
  return planned<LogSumExpPlan>([](const auto&... arguments) { logsumexp(arguments...); }, exec, x, lse);
}

template <class T>
Prepared gradient(const Exec& exec, const Case& shape, const Tensors& at) {
  const auto y  = matrix(static_cast<const T*>(at.x), shape);
  const auto dy = matrix(static_cast<const T*>(at.dy), shape);
  const auto dx = matrix(static_cast<T*>(at.y), shape);
  if (shape.op == RowOperator::softmax_backward)
    return planned<SoftmaxBackwardPlan>([](const auto&... arguments) { softmax_backward(arguments...); }, exec, y, dy,
                                        dx);
  return planned<LogSoftmaxBackwardPlan>([](const auto&... arguments) { log_softmax_backward(arguments...); }, exec, y,
                                         dy, dx);
}

/// The mean of the rows' losses, and its gradient over the logits.
template <class T>
Prepared cross_entropy(const Exec& exec, const Case& shape, const Tensors& at) {
  const auto logits = matrix(static_cast<T*>(at.y), shape);
  const auto labels = vector(at.labels, shape.rows);
  const Kokkos::View<accumulator_t<T>, Exec, Kokkos::MemoryUnmanaged> loss(static_cast<accumulator_t<T>*>(at.loss));
  return {.call = [=] { cross_entropy_with_gradient(exec, logits, labels, loss, logits); },
          .run  = {},
          .plan = to_string(make_cross_entropy_plan(shape.op, exec, logits, labels, loss, logits))};
}

/// Scale and a causal mask, on heads of as many queries as columns.
template <class T>
Prepared causal(const Exec& exec, const Case& shape, const Tensors& at) {
  if (shape.rows % shape.cols != 0)
    throw std::invalid_argument("kokkosnn_peers: " + std::to_string(shape.rows) + " rows are no heads of " +
                                std::to_string(shape.cols));
  const auto by_head = [&]<class V>(V* data) {
    return Kokkos::View<V***, Kokkos::LayoutRight, Exec, Kokkos::MemoryUnmanaged>(data, shape.heads(), shape.cols,
                                                                                  shape.cols);
  };
  const auto x = by_head(static_cast<const T*>(at.x));
  const auto y = by_head(static_cast<T*>(at.y));
  const MaskedSoftmaxOptions options{.scale = mask_scale};
  const auto plan =
      std::make_shared<MaskedSoftmaxPlan<Exec, decltype(x), decltype(y)>>(exec, x, CausalMask{}, y, options);
  return {.call = [=] { masked_softmax(exec, x, CausalMask{}, y, options); },
          .run  = [=] { plan->run(); },
          .plan = to_string(plan->row_plan())};
}

template <class T>
Prepared ragged(const Exec& exec, const Case& shape, const Tensors& at) {
  const auto x       = vector(static_cast<const T*>(at.x), shape.x_elements());
  const auto y       = vector(static_cast<T*>(at.y), shape.x_elements());
  const auto offsets = vector(at.offsets, shape.offsets());
  return {.call = [=] { segmented_softmax(exec, x, offsets, y); }, .run = {}, .plan = "chunks of the values"};
}

/// True if a shape can be prepared.
bool is_served(const Case& shape) {
  const bool is_right         = shape.layout == Layout::right;
  const OperatorFamily family = traits_of(shape.op).family;
  if (!shape.is_of_rows()) return false;
  if (shape.op == RowOperator::softmax) return true;
  if (family == OperatorFamily::forward) return !is_ragged(shape.layout);
  if (family == OperatorFamily::masked) return is_right && shape.mask == MaskKind::causal;
  return is_right && (family == OperatorFamily::gradient || shape.op == RowOperator::cross_entropy_with_gradient);
}

template <class T>
Prepared prepared(const Exec& exec, const Case& shape, const Tensors& at) {
  if (is_ragged(shape.layout)) return ragged<T>(exec, shape, at);
  if (shape.layout == Layout::left) return forward<T, Kokkos::LayoutLeft>(exec, shape, at);
  if (row_tensors(shape.op) == 2) return gradient<T>(exec, shape, at);
  if (is_cross_entropy(shape.op)) return cross_entropy<T>(exec, shape, at);
  if (shape.mask != MaskKind::none) return causal<T>(exec, shape, at);
  return forward<T, Kokkos::LayoutRight>(exec, shape, at);
}

/// The value whose name it is.
template <class Value, class Values>
Value named(const char* kind, std::string_view name, const Values& values) {
  for (const Value value : values)
    if (name == to_string(value)) return value;
  throw std::invalid_argument("kokkosnn_peers: no " + std::string(kind) + " " + std::string(name));
}

constexpr auto element_types = {ElementType::f64, ElementType::f32, ElementType::f16, ElementType::bf16};

Layout layout_named(std::string_view name) {
  constexpr std::array layouts{Layout::right, Layout::left, Layout::ragged, Layout::even, Layout::skewed};
  return named<Layout>("layout", name, layouts);
}

/// The case that the names stand for; std::invalid_argument where nothing serves them.
Case case_named(std::string_view op, std::string_view type, std::string_view layout, std::int64_t rows,
                std::int64_t cols) {
  std::array<RowOperator, operator_count> operators;
  for (int i = 0; i < operator_count; ++i) operators[i] = RowOperator(i);
  Case shape;
  shape.op     = named<RowOperator>("operator", op, operators);
  shape.x_type = shape.y_type = named<ElementType>("element type", type, element_types);
  shape.layout                = layout_named(layout);
  shape.mask                  = shape.op == RowOperator::masked_softmax ? MaskKind::causal : MaskKind::none;
  shape.rows                  = rows;
  shape.cols                  = cols;
  if (!is_served(shape))
    throw std::invalid_argument("kokkosnn_peers: no " + std::string(op) + " for layout " + std::string(layout));
  return shape;
}

std::vector<Case> served_cases(const Exec& exec) {
  std::vector<Case> result = cases(true, traffic_limit(exec, true));
  std::erase_if(result, [](const Case& shape) { return !shape.is_of_rows() || !is_served(shape); });
  return result;
}

/// The tolerances by element type, as [relative, absolute].
std::string tolerances_json() {
  std::string result    = "{";
  const char* separator = "";
  for (const ElementType type : element_types) {
    char numbers[64];
    std::snprintf(numbers, sizeof(numbers), "[%.17g, %.17g]", tolerance(type).relative, tolerance(type).absolute);
    result.append(separator).append(json(KokkosNN::to_string(type))).append(": ").append(numbers);
    separator = ", ";
  }
  return result + "}";
}

/// State that lives between initialize and finalize.
struct Session {
  std::string description;
  std::vector<std::unique_ptr<Prepared>> prepared;
};

std::unique_ptr<Session>& session() {
  static std::unique_ptr<Session> instance;
  return instance;
}

/// Runs `body` and turns what it throws into the text that the caller gets.
template <class Body>
const char* guarded(Body&& body) {
  thread_local std::string error;
  try {
    body();
    return nullptr;
  } catch (const std::exception& exception) {
    error = exception.what();
  } catch (...) {
    error = "kokkosnn_peers: an exception of an unknown type";
  }
  return error.c_str();
}

}  // namespace
}  // namespace KokkosNN::Perf

#define KOKKOSNN_PEERS_API extern "C" __attribute__((visibility("default")))

using KokkosNN::Perf::Prepared;

/// Kokkos' name of the backend that this library is built for: Cuda, HIP, OpenMP, ...; may be called at any time.
KOKKOSNN_PEERS_API const char* kokkosnn_peers_backend() { return KokkosNN::Perf::Exec::name(); }

/// Starts Kokkos on a device (negative: Kokkos' choice; a host has none). Once a process.
KOKKOSNN_PEERS_API const char* kokkosnn_peers_initialize(int device) {
  return KokkosNN::Perf::guarded([&] {
    if (Kokkos::is_initialized() || Kokkos::is_finalized())
      throw std::logic_error("kokkosnn_peers_initialize: Kokkos can be started once in a process");
    Kokkos::InitializationSettings settings;
    if (KokkosNN::Perf::on_gpu && device >= 0) settings.set_device_id(device);
    Kokkos::initialize(settings);
    KokkosNN::Perf::session() = std::make_unique<KokkosNN::Perf::Session>();
  });
}

/// Frees what is prepared and stops Kokkos; the streams that were handed over must still be there. Nothing where Kokkos
/// was not started.
KOKKOSNN_PEERS_API void kokkosnn_peers_finalize() {
  KokkosNN::Perf::session().reset();
  if (Kokkos::is_initialized() && !Kokkos::is_finalized()) Kokkos::finalize();
}

/// JSON: context (machine and build), tolerances by element type, mask_scale, cold_bytes (what is written before a
/// timed call), and those shapes of the sweeps that can be prepared, as they run on this machine; nullptr before
/// initialize.
KOKKOSNN_PEERS_API const char* kokkosnn_peers_describe() {
  using namespace KokkosNN::Perf;
  if (!session()) return nullptr;
  const Exec exec;
  session()->description = "{\"context\": " + json(machine_context(exec)) + ",\n\"tolerances\": " + tolerances_json() +
                           ",\n\"mask_scale\": " + std::to_string(mask_scale) +
                           ",\n\"cold_bytes\": " + std::to_string(ColdCache::bytes) +
                           ",\n\"shapes\": " + json(served_cases(exec)) + "}";
  return session()->description.c_str();
}

/// Where ragged rows begin: rows + 1 numbers, in memory of the host.
///
/// \param layout  ragged, even or skewed
/// \param cols    how many elements rows have in the mean; without the long one of skewed
KOKKOSNN_PEERS_API const char* kokkosnn_peers_offsets(const char* layout, std::int64_t rows, std::int64_t cols,
                                                      std::int32_t* offsets) {
  using namespace KokkosNN::Perf;
  return guarded([&] {
    const Layout kind = layout_named(layout);
    if (!is_ragged(kind))
      throw std::invalid_argument("kokkosnn_peers: layout " + std::string(layout) + " has no offsets");
    for (std::int64_t row = 0; row <= rows; ++row) {
      offsets[row] = static_cast<std::int32_t>(row_begin(kind, rows, cols, row));
    }
  });
}

/// Makes an operator ready to run on a stream; rows by cols elements, without gaps.
///
/// \param op      softmax; log_softmax or logsumexp (y: one value a row), of a matrix; softmax_backward,
///                log_softmax_backward, cross_entropy_with_gradient (the mean's) or masked_softmax (mask_scale and a
///                causal mask on heads of cols rows), of layout right
/// \param type    f64, f32, f16 or bf16, of x, dy and y
/// \param layout  right or left; for ragged rows as for kokkosnn_peers_offsets
/// \param at      see Tensors
/// \param stream  cudaStream_t or hipStream_t (null: the default stream); ignored on a host
/// \param result  gets the handle for the functions below; unchanged on failure
KOKKOSNN_PEERS_API const char* kokkosnn_peers_prepare(const char* op, const char* type, const char* layout,
                                                      std::int64_t rows, std::int64_t cols,
                                                      const KokkosNN::Perf::Tensors* at, void* stream,
                                                      const Prepared** result) {
  using namespace KokkosNN::Perf;
  return guarded([&] {
    if (!session()) throw std::logic_error("kokkosnn_peers_prepare: call kokkosnn_peers_initialize first");
    const Exec exec  = instance_on(stream);
    const Case shape = case_named(op, type, layout, rows, cols);
    with_type(shape.x_type, [&]<class T>(std::type_identity<T>) {
      *result = session()->prepared.emplace_back(std::make_unique<Prepared>(prepared<T>(exec, shape, *at))).get();
    });
  });
}

/// The plan's label.
KOKKOSNN_PEERS_API const char* kokkosnn_peers_plan(const Prepared* prepared) { return prepared->plan.c_str(); }

/// Enqueues the public function's call; may be captured in a graph once it has run outside of one.
KOKKOSNN_PEERS_API const char* kokkosnn_peers_run_call(const Prepared* prepared) {
  return KokkosNN::Perf::guarded([&] { prepared->call(); });
}

/// Enqueues the plan object's run; may be captured in a graph. Cross entropies and ragged rows have no such object.
KOKKOSNN_PEERS_API const char* kokkosnn_peers_run_plan(const Prepared* prepared) {
  return KokkosNN::Perf::guarded([&] {
    if (!prepared->run) throw std::logic_error("kokkosnn_peers_run_plan: there is no plan object of " + prepared->plan);
    prepared->run();
  });
}

/// Frees a handle; what it enqueued must be done.
KOKKOSNN_PEERS_API void kokkosnn_peers_release(const Prepared* prepared) {
  if (const auto& session = KokkosNN::Perf::session())
    std::erase_if(session->prepared, [&](const auto& owned) { return owned.get() == prepared; });
}
