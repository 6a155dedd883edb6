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
#include <cstdint>
#include <cstdio>
#include <exception>
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

/// One operator on one pair of Views, made once and run often, erased.
class Prepared {
 public:
  virtual ~Prepared()                     = default;
  virtual void run_plan() const           = 0;  ///< what the plan object enqueues
  virtual void run_call() const           = 0;  ///< the public function, checks and planning in it
  virtual const std::string& plan() const = 0;
};

template <class Plan, class Call, class XView, class YView>
class PreparedViews : public Prepared {
 public:
  PreparedViews(const Exec& exec, const XView& x, const YView& y, Call call)
      : m_exec(exec), m_x(x), m_y(y), m_call(call), m_planned(exec, x, y), m_text(to_string(m_planned.row_plan())) {}

  void run_plan() const override { m_planned.run(); }
  void run_call() const override { m_call(m_exec, m_x, m_y); }
  const std::string& plan() const override { return m_text; }

 private:
  Exec m_exec;
  XView m_x;
  YView m_y;
  Call m_call;
  Plan m_planned;
  std::string m_text;
};

template <template <class, class, class> class Plan, class Call, class XView, class YView>
std::unique_ptr<Prepared> prepared(const Exec& exec, const XView& x, const YView& y, Call call) {
  return std::make_unique<PreparedViews<Plan<Exec, XView, YView>, Call, XView, YView>>(exec, x, y, call);
}

template <class T, class ViewLayout>
std::unique_ptr<Prepared> prepared(std::string_view op, const Exec& exec, std::int64_t rows, std::int64_t cols,
                                   const void* x_data, void* y_data) {
  const Kokkos::View<const T**, ViewLayout, Exec, Kokkos::MemoryUnmanaged> x(static_cast<const T*>(x_data), rows, cols);
  const Kokkos::View<T**, ViewLayout, Exec, Kokkos::MemoryUnmanaged> y(static_cast<T*>(y_data), rows, cols);
  if (op == KokkosNN::to_string(RowOperator::softmax))
    return prepared<SoftmaxPlan>(exec, x, y, [](const auto&... views) { KokkosNN::softmax(views...); });
  if (op == KokkosNN::to_string(RowOperator::log_softmax))
    return prepared<LogSoftmaxPlan>(exec, x, y, [](const auto&... views) { KokkosNN::log_softmax(views...); });
  if (op == KokkosNN::to_string(RowOperator::logsumexp)) {
    const Kokkos::View<T*, Exec, Kokkos::MemoryUnmanaged> lse(static_cast<T*>(y_data), rows);
    return prepared<LogSumExpPlan>(exec, x, lse, [](const auto&... views) { KokkosNN::logsumexp(views...); });
  }
  throw std::invalid_argument("kokkosnn_peers: no operator " + std::string(op));
}

ElementType element_type(std::string_view name) {
  for (const ElementType type : {ElementType::f64, ElementType::f32, ElementType::f16, ElementType::bf16})
    if (name == KokkosNN::to_string(type)) return type;
  throw std::invalid_argument("kokkosnn_peers: no element type " + std::string(name));
}

Layout layout(std::string_view name) {
  for (const Layout layout : {Layout::right, Layout::left})
    if (name == to_string(layout)) return layout;
  throw std::invalid_argument("kokkosnn_peers: no layout " + std::string(name));
}

/// The tolerances by element type, as [relative, absolute].
std::string tolerances_json() {
  std::string result    = "{";
  const char* separator = "";
  for (const ElementType type : {ElementType::f64, ElementType::f32, ElementType::f16, ElementType::bf16}) {
    char numbers[64];
    std::snprintf(numbers, sizeof(numbers), "[%.17g, %.17g]", tolerance(type).relative, tolerance(type).absolute);
    result.append(separator).append(json(KokkosNN::to_string(type))).append(": ").append(numbers);
    separator = ", ";
  }
  return result + "}";
}

/// What lives between initialize and finalize.
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

/// JSON: context (machine and build), tolerances by element type, cold_bytes (what is written before a timed call), and
/// the shapes of all sweeps as they run on this machine; nullptr before initialize.
KOKKOSNN_PEERS_API const char* kokkosnn_peers_describe() {
  using namespace KokkosNN::Perf;
  if (!session()) return nullptr;
  const Exec exec;
  session()->description = "{\"context\": " + json(machine_context(exec)) + ",\n\"tolerances\": " + tolerances_json() +
                           ",\n\"cold_bytes\": " + std::to_string(ColdCache::bytes) +
                           ",\n\"shapes\": " + json(cases(true, with_16_bit_types, traffic_limit(exec, true))) + "}";
  return session()->description.c_str();
}

/// Makes an operator on x and y ready to run on a stream; rows by cols elements, without gaps.
///
/// \param op      softmax, log_softmax or logsumexp (y: one value a row)
/// \param type    f64, f32, f16 or bf16, of x and of y
/// \param layout  right or left
/// \param stream  cudaStream_t or hipStream_t (null: the default stream); ignored on a host
/// \param result  gets the handle for the functions below; unchanged on failure
KOKKOSNN_PEERS_API const char* kokkosnn_peers_prepare(const char* op, const char* type, const char* layout,
                                                      std::int64_t rows, std::int64_t cols, const void* x, void* y,
                                                      void* stream, const Prepared** result) {
  using namespace KokkosNN::Perf;
  return guarded([&] {
    if (!session()) throw std::logic_error("kokkosnn_peers_prepare: call kokkosnn_peers_initialize first");
    const Exec exec = instance_on(stream);
    std::unique_ptr<Prepared> made;
    const bool right = KokkosNN::Perf::layout(layout) == Layout::right;
    with_type(element_type(type), [&]<class T>(std::type_identity<T>) {
      made = right ? prepared<T, Kokkos::LayoutRight>(op, exec, rows, cols, x, y)
                   : prepared<T, Kokkos::LayoutLeft>(op, exec, rows, cols, x, y);
    });
    *result = session()->prepared.emplace_back(std::move(made)).get();
  });
}

/// The plan's label.
KOKKOSNN_PEERS_API const char* kokkosnn_peers_plan(const Prepared* prepared) { return prepared->plan().c_str(); }

/// Enqueues the public function's call; may be captured in a graph once it has run outside of one.
KOKKOSNN_PEERS_API const char* kokkosnn_peers_run_call(const Prepared* prepared) {
  return KokkosNN::Perf::guarded([&] { prepared->run_call(); });
}

/// Enqueues the plan object's run; may be captured in a graph.
KOKKOSNN_PEERS_API const char* kokkosnn_peers_run_plan(const Prepared* prepared) {
  return KokkosNN::Perf::guarded([&] { prepared->run_plan(); });
}

/// Frees a handle; what it enqueued must be done.
KOKKOSNN_PEERS_API void kokkosnn_peers_release(const Prepared* prepared) {
  if (const auto& session = KokkosNN::Perf::session())
    std::erase_if(session->prepared, [&](const auto& owned) { return owned.get() == prepared; });
}
