// What one event costs the thread that it happens on: reading the clock and filling the event in
// (null), storing it in the ring as well (on), and finding the ring full.

#include <benchmark/benchmark.h>

#include "resilient_ccl/telemetry/recorder.h"

namespace faultline::telemetry {
namespace {

Event madeEvent(std::uint64_t number) {
  return {.at = now(),
          .bytes = 65536,
          .number = number,
          .offset = number * 65536,
          .epoch = 1,
          .peer = 1,
          .rail = 0,
          .kind = EventKind::kChunkSent};
}

void BM_ClockAlone(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(now());
}
BENCHMARK(BM_ClockAlone);

void BM_EventNull(benchmark::State& state) {
  Recorder recorder(Mode::kNull);
  std::uint64_t number = 0;
  for (auto _ : state) recorder.record(madeEvent(++number));
}
BENCHMARK(BM_EventNull);

void BM_EventOn(benchmark::State& state) {
  Recorder recorder(Mode::kOn);
  std::uint64_t number = 0;
  // Emptied by this thread and outside the measured time, so that no event finds the ring full.
  for (auto _ : state) {
    recorder.record(madeEvent(++number));
    if (number % (Recorder::kRing / 2) != 0) continue;
    state.PauseTiming();
    while (recorder.take()) {
    }
    state.ResumeTiming();
  }
  state.counters["dropped"] = static_cast<double>(recorder.dropped());
}
BENCHMARK(BM_EventOn);

void BM_EventOnFull(benchmark::State& state) {
  Recorder recorder(Mode::kOn);
  std::uint64_t number = 0;
  for (auto _ : state) recorder.record(madeEvent(++number));  // nobody empties it
}
BENCHMARK(BM_EventOnFull);

}  // namespace
}  // namespace faultline::telemetry

BENCHMARK_MAIN();
