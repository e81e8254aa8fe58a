// Reduction next to what the memory of the same machine gives in the same run.
//
// Bytes counted are those of one operand. A reduction reads two streams and writes one. What memory
// allows for that is the better of two: a plain loop of 64-bit words (a ^= b), and memcpy, which
// has two streams of the three. `of_memory` is the measured rate over that; 0.8 is asked for where
// the buffers are in memory. Both are measured right before each reduction, because other users of
// the machine change its speed; the best round counts, of all.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <vector>

#include "resilient_ccl/reduction/reduce.h"

namespace faultline::reduction {
namespace {

constexpr std::int64_t kInCache = 64 << 10;
constexpr std::int64_t kInMemory = 64 << 20;
constexpr int kRounds = 40;

/// Of the processor: others who run in between are not counted.
double seconds(auto&& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  benchmark::ClobberMemory();
  return now() - start;
}

void BM_Reduce(benchmark::State& state, DataType type, ReduceOp op, int divisor) {
  const std::int64_t bytes = state.range(0);
  // All-zero bytes are 0 in every type: no denormals, no overflow.
  std::vector<std::int64_t> accumulator(static_cast<std::size_t>(bytes) / sizeof(std::int64_t));
  std::vector<std::int64_t> operand(accumulator.size());
  double allowed = 1e9, best = 1e9;
  const Reduction step{.type = type,
                       .op = op,
                       .target = accumulator.data(),
                       .left = accumulator.data(),
                       .right = operand.data(),
                       .count = bytes / sizeOf(type),
                       .divisor = divisor};
  for (auto _ : state) {
    best = std::min(best, seconds([&] { reduce(step); }));
    state.PauseTiming();
    constexpr double kStreams = 3.0 / 2;  // of a reduction, over those of a copy
    const double copy = seconds(
        [&] { std::memcpy(accumulator.data(), operand.data(), static_cast<std::size_t>(bytes)); });
    const double words = seconds([&] {
      for (std::size_t j = 0; j < accumulator.size(); ++j) accumulator[j] ^= operand[j];
    });
    allowed = std::min({allowed, copy * kStreams, words});
    state.ResumeTiming();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["of_memory"] = allowed / best;
}

void registerReductions() {
  for (const std::int64_t bytes : {kInMemory, kInCache}) {
    for (const DataType type : kAllDataTypes) {
      for (const ReduceOp op : kAllReduceOps) {
        const std::string name =
            "BM_Reduce/" + std::string(nameOf(type)) + "/" + std::string(nameOf(op));
        benchmark::RegisterBenchmark(name.c_str(), BM_Reduce, type, op,
                                     op == ReduceOp::kAvg ? 8 : 1)
            ->Arg(bytes)
            ->Iterations(kRounds);
      }
    }
  }
}

}  // namespace
}  // namespace faultline::reduction

int main(int argc, char** argv) {
  faultline::reduction::registerReductions();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
