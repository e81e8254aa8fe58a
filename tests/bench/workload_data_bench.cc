// Generator and checker of gradient data: they run outside the timed region, but in every
// iteration.

#include <benchmark/benchmark.h>

#include <vector>

#include "harness/workload/data.h"
#include "harness/workload/digest.h"

namespace faultline::workload {
namespace {

constexpr std::int64_t kElements = 1'000'000;

void BM_FillIntegers(benchmark::State& state) {
  std::vector<float> buffer(kElements);
  for (auto _ : state) {
    fillIntegers(reduction::DataType::kF32, buffer.data(), kElements, 0, {1, 2}, 3);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kElements);
}
BENCHMARK(BM_FillIntegers)->Unit(benchmark::kMillisecond);

void BM_FillRandom(benchmark::State& state) {
  std::vector<float> buffer(kElements);
  for (auto _ : state) {
    fillRandom(reduction::DataType::kF32, buffer.data(), kElements, 0, {1, 2}, 3);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kElements);
}
BENCHMARK(BM_FillRandom)->Unit(benchmark::kMillisecond);

void BM_CheckIntegerSum(benchmark::State& state) {
  std::vector<float> buffer(kElements);
  for (auto _ : state) {
    benchmark::DoNotOptimize(checkIntegerSum(reduction::DataType::kF32, buffer.data(), kElements, 0,
                                             {1, 2}, static_cast<int>(state.range(0))));
  }
  state.SetItemsProcessed(state.iterations() * kElements);
}
BENCHMARK(BM_CheckIntegerSum)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);

void BM_Digest(benchmark::State& state) {
  std::vector<float> buffer(kElements);
  Digest digest;
  for (auto _ : state) digest.add(buffer.data(), buffer.size() * sizeof(float));
  state.SetItemsProcessed(state.iterations() * kElements);
}
BENCHMARK(BM_Digest)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace faultline::workload

BENCHMARK_MAIN();
