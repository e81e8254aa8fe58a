// Reduction next to a plain memory copy of the same bytes. Bytes counted are those of one operand:
// a reduction touches three streams (two reads, one write), a copy two.

#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "resilient_ccl/comm/reduce.h"

namespace faultline::comm {
namespace {

constexpr std::int64_t kInCache = 64 << 10;
constexpr std::int64_t kInMemory = 64 << 20;

void BM_Reduce(benchmark::State& state, DataType type, ReduceOp op) {
  const std::int64_t bytes = state.range(0);
  // All-zero bytes are 0 in every type: no denormals, no overflow.
  std::vector<std::int64_t> accumulator(static_cast<std::size_t>(bytes) / sizeof(std::int64_t));
  std::vector<std::int64_t> operand(accumulator.size());
  for (auto _ : state) {
    reduce(type, op, accumulator.data(), operand.data(), bytes / sizeOf(type));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

void BM_Copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<char> target(bytes, 1);
  std::vector<char> source(bytes, 2);
  for (auto _ : state) {
    std::memcpy(target.data(), source.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Copy)->Arg(kInCache)->Arg(kInMemory);

void registerReductions() {
  for (const DataType type : kAllDataTypes) {
    for (const ReduceOp op : kAllReduceOps) {
      const std::string name =
          "BM_Reduce/" + std::string(nameOf(type)) + "/" + std::string(nameOf(op));
      benchmark::RegisterBenchmark(name.c_str(), BM_Reduce, type, op)
          ->Arg(kInCache)
          ->Arg(kInMemory);
    }
  }
}

}  // namespace
}  // namespace faultline::comm

int main(int argc, char** argv) {
  faultline::comm::registerReductions();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
