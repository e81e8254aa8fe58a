#include <benchmark/benchmark.h>

#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/op_table.h"
#include "resilient_ccl/schedule/replay.h"

namespace faultline::schedule {
namespace {

std::unique_ptr<Schedule> make(const std::string& algorithm, int ranks, int segments) {
  std::vector<double> bandwidths(static_cast<std::size_t>(ranks), 1.0);
  bandwidths[1] = 0.75;
  auto schedule = makeSchedule(
      algorithm,
      {.ranks = ranks, .elements = 1 << 26, .segments = segments, .bandwidths = bandwidths});
  return std::move(*schedule);
}

/// Operations made one by one from the closed form, as an executor does.
void generate(benchmark::State& state, const std::string& algorithm) {
  const auto schedule = make(algorithm, 64, 16);
  std::int64_t ops = 0;
  for (auto _ : state) {
    for (int rank = 0; rank < schedule->ranks(); ++rank) {
      for (int lane = 0; lane < schedule->lanes(); ++lane) {
        const std::int64_t count = schedule->opCount(rank, lane);
        for (std::int64_t i = 0; i < count; ++i) {
          benchmark::DoNotOptimize(schedule->op(rank, lane, i));
        }
        ops += count;
      }
    }
  }
  state.SetItemsProcessed(ops);
}
BENCHMARK_CAPTURE(generate, ring, "ring")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(generate, optcc, "optcc")->Unit(benchmark::kMillisecond);

/// The generic path: every operation generated, checked, waits and partners resolved.
void load(benchmark::State& state, const std::string& algorithm) {
  const auto schedule = make(algorithm, 64, 16);
  std::int64_t ops = 0;
  for (auto _ : state) {
    Problems problems;
    const auto table = OpTable::load(*schedule, problems);
    if (!table.ok() || !problems.empty()) state.SkipWithError("the schedule is wrong");
    ops += table->size();
  }
  state.SetItemsProcessed(ops);
}
BENCHMARK_CAPTURE(load, ring, "ring")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(load, optcc, "optcc")->Unit(benchmark::kMillisecond);

/// All operations issued and completed in the order that the rules allow.
void replay(benchmark::State& state, const std::string& algorithm) {
  const auto schedule = make(algorithm, 64, 16);
  Problems problems;
  const auto table = OpTable::load(*schedule, problems);
  std::int64_t ops = 0;
  for (auto _ : state) {
    Replay run(*table, 0);
    for (auto movable = run.takeMovable(); !movable.empty(); movable = run.takeMovable()) {
      for (const int op : movable) run.complete(op);
      benchmark::DoNotOptimize(run.takeIssued());
      benchmark::DoNotOptimize(run.takeReceived());
    }
    if (!run.finished()) state.SkipWithError("the schedule deadlocks");
    ops += table->size();
  }
  state.SetItemsProcessed(ops);
}
BENCHMARK_CAPTURE(replay, ring, "ring")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay, optcc, "optcc")->Unit(benchmark::kMillisecond);

/// 1,024 ranks and 64 segments from macro steps.
void steps(benchmark::State& state) {
  const auto schedule = make("optcc", 1024, 64);
  std::vector<double> bandwidths(1024, 1.0);
  bandwidths[1] = 0.75;
  for (auto _ : state) {
    benchmark::DoNotOptimize(costOf(*schedule, bandwidths, {.portModel = PortModel::kOnePort}));
  }
}
BENCHMARK(steps)->Unit(benchmark::kMillisecond);

/// Played on fluid ports, which share what 32 ranks send each other at once.
void fluid(benchmark::State& state, const std::string& algorithm) {
  const auto schedule = make(algorithm, 32, 4);
  std::vector<double> bandwidths(32, 1.0);
  bandwidths[1] = 0.75;
  for (auto _ : state) {
    benchmark::DoNotOptimize(costOf(*schedule, bandwidths));
  }
}
BENCHMARK_CAPTURE(fluid, ring, "ring")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fluid, optcc, "optcc")->Unit(benchmark::kMillisecond);

/// Played on ports that carry one of the messages that wait for them: 128 rings' worth at each.
void onePort(benchmark::State& state) {
  const auto schedule = make("ring", 16, 128);
  std::vector<double> bandwidths(16, 1.0);
  bandwidths[1] = 0.75;
  for (auto _ : state) {
    benchmark::DoNotOptimize(costOf(*schedule, bandwidths, {.portModel = PortModel::kOnePort}));
  }
}
BENCHMARK(onePort)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace faultline::schedule

BENCHMARK_MAIN();
