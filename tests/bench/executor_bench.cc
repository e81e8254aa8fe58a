// What the executor itself costs: one rank whose messages are done at once, without a network and
// with hardly any data. Operations counted are those of the schedule.

#include <benchmark/benchmark.h>

#include <vector>

#include "resilient_ccl/comm/executor.h"
#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::comm {
namespace {

class InstantPort final : public MessagePort {
 public:
  void postSend(int, const channel::MessageKey&, const std::byte*, Bytes,
                std::uint64_t token) override {
    done.push_back(token);
  }
  void postReceive(int, const channel::MessageKey&, std::byte*, Bytes,
                   std::uint64_t token) override {
    done.push_back(token);
  }
  std::vector<std::uint64_t> done;
};

class Client final : public ReducerClient {
 public:
  explicit Client(Executor& executor) : executor_(executor) {}
  void reduced(std::uint64_t token) override { executor_.reduced(token); }

 private:
  Executor& executor_;
};

void BM_Executor(benchmark::State& state, const char* algorithm) {
  constexpr int kRanks = 8;
  const auto segments = static_cast<int>(state.range(0));
  const std::int64_t elements = state.range(0) * kRanks * 16;
  const auto schedule = schedule::makeSchedule(
      algorithm, {.ranks = kRanks, .elements = elements, .segments = segments});
  if (!schedule.ok()) return state.SkipWithError("no such schedule");
  const auto program = Program::compile(**schedule, 3);
  std::int64_t operations = 0;
  for (const Program::Lane& lane : program->lanes()) operations += std::ssize(lane.steps);
  std::vector<float> buffer(elements);
  StagingPool staging(256 << 10);
  for (auto _ : state) {
    InstantPort port;
    PollingReducer reducer;
    Executor executor({.program = program, .source = buffer.data(), .target = buffer.data()}, port,
                      reducer, staging, 1);
    Client client(executor);
    executor.start();
    while (!executor.finished()) {
      std::vector<std::uint64_t> done;
      std::swap(done, port.done);
      for (const std::uint64_t token : done) executor.messageDone(token);
      reducer.poll(client);
    }
  }
  state.SetItemsProcessed(state.iterations() * operations);
}
BENCHMARK_CAPTURE(BM_Executor, ring, "ring")->Arg(2)->Arg(16);
BENCHMARK_CAPTURE(BM_Executor, optcc, "optcc")->Arg(16)->Arg(64);

void BM_Compile(benchmark::State& state, const char* algorithm) {
  const auto ranks = static_cast<int>(state.range(0));
  constexpr int kSegments = 64;
  const auto schedule = schedule::makeSchedule(
      algorithm, {.ranks = ranks, .elements = 1 << 24, .segments = kSegments});
  if (!schedule.ok()) return state.SkipWithError("no such schedule");
  for (auto _ : state) benchmark::DoNotOptimize(Program::compile(**schedule, 0));
}
BENCHMARK_CAPTURE(BM_Compile, ring, "ring")->Arg(8)->Arg(32)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Compile, optcc, "optcc")->Arg(8)->Arg(32)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace faultline::comm

BENCHMARK_MAIN();
