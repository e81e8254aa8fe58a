// What the verbs shim costs on calls that no fault is about, per call, against the same provider
// without it: while none is armed, and while one is for another queue pair. The provider does next
// to nothing, so that nothing hides the difference. Both are in one process and take turns in short
// blocks; `added_ns` is the median over the differences of neighbours, `bare_ns` what the call
// costs without the shim, and `of_bound` the former as a share of what is allowed, which the
// nightly gate looks at.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/clock.h"
#include "injector/verbs/connection.h"
#include "injector/verbs/shim/readers.h"
#include "tests/support/verbs/verbs_library.h"

namespace faultline {
namespace {

using injector::verbs::Effect;
using testing::VerbsLibrary;

constexpr int kBenchDevice = 3;
constexpr int kCallsPerBlock = 10'000;
// The shim may add so much to a call that it has nothing to do with, whichever is more.
constexpr double kMostAddedNs = 5;
constexpr double kMostAddedShare = 0.01;

/// A queue pair and completion queue of the device that does nothing.
struct Endpoint {
  explicit Endpoint(const VerbsLibrary& of, int device = kBenchDevice) : library(of) {
    ibv_device** const devices = library.getDeviceList(nullptr);
    context = library.openDevice(devices[device]);
    library.freeDeviceList(devices);
    cq = library.createCq(context, 64, nullptr, nullptr, 0);
    qp = makeQp();
  }

  ibv_qp* makeQp() const {
    ibv_pd* const pd = library.allocPd(context);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap.max_send_wr = 64;
    init.qp_type = IBV_QPT_RC;
    return library.createQp(pd, &init);
  }

  const VerbsLibrary& library;
  ibv_context* context = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
};

const VerbsLibrary& bare() {
  static const VerbsLibrary library = VerbsLibrary::load(FAULTLINE_FAKE_IBVERBS);
  return library;
}

const VerbsLibrary& shim() {
  static const VerbsLibrary library = [] {
    ::setenv("FAULTLINE_VERBS_LIB", FAULTLINE_FAKE_IBVERBS, 1);
    return VerbsLibrary::load(FAULTLINE_VERBS_SHIM);
  }();
  return library;
}

struct Post {
  static void call(const Endpoint& endpoint) {
    ibv_send_wr request{};
    ibv_send_wr* bad = nullptr;
    benchmark::DoNotOptimize(ibv_post_send(endpoint.qp, &request, &bad));
  }
};

struct PostRecv {
  static void call(const Endpoint& endpoint) {
    ibv_recv_wr request{};
    ibv_recv_wr* bad = nullptr;
    benchmark::DoNotOptimize(ibv_post_recv(endpoint.qp, &request, &bad));
  }
};

struct Poll {
  static void call(const Endpoint& endpoint) {
    static ibv_wc completion{};  // of the queue pair 0, which nobody has
    benchmark::DoNotOptimize(ibv_poll_cq(endpoint.cq, 1, &completion));
  }
};

/// A completion of the endpoint's own queue pair.
struct PollOwn {
  static void call(const Endpoint& endpoint) {
    ibv_wc completion{};
    completion.qp_num = endpoint.qp->qp_num;
    benchmark::DoNotOptimize(ibv_poll_cq(endpoint.cq, 1, &completion));
  }
};

template <typename Call>
double nanosecondsPerCall(const Endpoint& endpoint) {
  const TimePoint begin = now();
  for (int i = 0; i < kCallsPerBlock; ++i) Call::call(endpoint);
  return static_cast<double>((now() - begin).count()) / kCallsPerBlock;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

template <typename Call>
void measure(benchmark::State& state, const Endpoint& without, const Endpoint& with) {
  std::vector<double> added;
  std::vector<double> base;
  bool shim_first = false;
  for (auto unused : state) {
    // Whoever is second finds the caches warmer: they take turns.
    shim_first = !shim_first;
    const double first = nanosecondsPerCall<Call>(shim_first ? with : without);
    const double second = nanosecondsPerCall<Call>(shim_first ? without : with);
    base.push_back(shim_first ? second : first);
    added.push_back(shim_first ? first - second : second - first);
  }
  const double bare_ns = median(base);
  const double added_ns = median(added);
  state.counters["bare_ns"] = bare_ns;
  state.counters["added_ns"] = added_ns;
  state.counters["of_bound"] = added_ns / std::max(kMostAddedNs, kMostAddedShare * bare_ns);
}

template <typename Call>
void idle(benchmark::State& state) {
  static const Endpoint without(bare());
  static const Endpoint with(shim());
  measure<Call>(state, without, with);
}

/// The same twice: what a difference of nothing looks like here.
template <typename Call>
void nothing(benchmark::State& state) {
  static const Endpoint one(bare());
  static const Endpoint other(bare());
  measure<Call>(state, one, other);
}

/// Measures while a fault is armed for `victim`, whose trigger never comes.
template <typename Call>
void measureArmed(benchmark::State& state, const Endpoint& without, const Endpoint& with,
                  const ibv_qp& victim, Effect effect = Effect::kCompletionLoss) {
  using namespace injector::verbs;
  auto control = Connection::open(::getpid());
  if (!control.ok()) return state.SkipWithError(control.status().message().c_str());
  const auto armed = control->arm({.effect = effect,
                                   .match = {.number = victim.qp_num},
                                   .side = Side::kBoth,
                                   .trigger = {.afterOperations = std::uint64_t{1} << 60},
                                   .error = ENOMEM,
                                   .status = IBV_WC_RETRY_EXC_ERR,
                                   .delay = 1ms,
                                   .bitsPerSecond = 1'000'000'000,
                                   .lease = kLongestLease});
  if (!armed.ok()) return state.SkipWithError(armed.status().message().c_str());
  measure<Call>(state, without, with);
}

/// For a queue pair with a completion queue of its own.
template <typename Call>
void armedElsewhere(benchmark::State& state) {
  static const Endpoint without(bare());
  static const Endpoint with(shim());
  static const Endpoint victim(shim(), 0);
  measureArmed<Call>(state, without, with, *victim.qp);
}

/// For another one of the same completion queue.
template <typename Call>
void armedBeside(benchmark::State& state) {
  static const Endpoint without(bare());
  static const Endpoint with(shim());
  static const ibv_qp* const victim = with.makeQp();
  measureArmed<Call>(state, without, with, *victim);
}

/// For this one, and waits for its trigger: each post, or completion, is looked into.
template <typename Call, Effect kEffect>
void armedHere(benchmark::State& state) {
  static const Endpoint without(bare());
  static const Endpoint with(shim());
  measureArmed<Call>(state, without, with, *with.qp, kEffect);
}

/// Of the latter, what it takes to say that a thread is inside and that it has left.
void readers(benchmark::State& state) {
  static injector::verbs::shim::Readers readers;
  for (auto unused : state) {
    const injector::verbs::shim::Readers::Guard guard(readers);
    benchmark::ClobberMemory();
  }
}

BENCHMARK(readers)->Name("readers");
BENCHMARK(nothing<Post>)->Name("nothing/post_send")->Iterations(2000);
BENCHMARK(idle<Post>)->Name("idle/post_send")->Iterations(2000);
BENCHMARK(nothing<PostRecv>)->Name("nothing/post_recv")->Iterations(2000);
BENCHMARK(idle<PostRecv>)->Name("idle/post_recv")->Iterations(2000);
BENCHMARK(nothing<Poll>)->Name("nothing/poll_cq")->Iterations(2000);
BENCHMARK(idle<Poll>)->Name("idle/poll_cq")->Iterations(2000);
BENCHMARK(armedElsewhere<Post>)->Name("armed_elsewhere/post_send")->Iterations(500);
BENCHMARK(armedElsewhere<PostRecv>)->Name("armed_elsewhere/post_recv")->Iterations(500);
BENCHMARK(armedElsewhere<Poll>)->Name("armed_elsewhere/poll_cq")->Iterations(500);
BENCHMARK(armedBeside<Post>)->Name("armed_beside/post_send")->Iterations(500);
BENCHMARK(armedBeside<Poll>)->Name("armed_beside/poll_cq")->Iterations(500);

template <Effect kEffect>
void registerArmedHere() {
  const std::string name = fmt::format("armed_here/{}/", injector::verbs::effectName(kEffect));
  benchmark::RegisterBenchmark((name + "post_send").c_str(), armedHere<Post, kEffect>)
      ->Iterations(500);
  benchmark::RegisterBenchmark((name + "post_recv").c_str(), armedHere<PostRecv, kEffect>)
      ->Iterations(500);
  benchmark::RegisterBenchmark((name + "poll_cq").c_str(), armedHere<PollOwn, kEffect>)
      ->Iterations(500);
}

void registerAllArmedHere() {
  registerArmedHere<Effect::kCompletionLoss>();
  registerArmedHere<Effect::kCompletionRewrite>();
  registerArmedHere<Effect::kQpError>();
  registerArmedHere<Effect::kPostError>();
  registerArmedHere<Effect::kQpDelay>();
  registerArmedHere<Effect::kQpRate>();
}

}  // namespace
}  // namespace faultline

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  faultline::registerAllArmedHere();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
