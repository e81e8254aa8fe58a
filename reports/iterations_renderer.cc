#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "reports/csv_line.h"
#include "reports/renderer.h"
#include "reports/text.h"

namespace faultline::reports {
namespace {

constexpr const char* kColumnsOfIterations =
    "scenario,seed,strategy,block,arm,status,iteration,start_ms,ms,attempts,exposed_ms,faults_on\n";

/// How many strikes there were whose time shares some of the iteration's.
std::int64_t strikesWithin(const Run& run, const Iteration& iteration) {
  return std::ranges::count_if(run.faults, [&](const AppliedFault& fault) {
    const bool begins = fault.start_ms < iteration.start_ms + iteration.ms;
    return begins && (!fault.end_ms || *fault.end_ms > iteration.start_ms);
  });
}

/// A row per iteration of each run, for who draws and computes himself: results.csv has a run in
/// one row. Where calls or requests are the work, an iteration is one of them.
class IterationsRenderer final : public Renderer {
 public:
  const char* name() const override { return "iterations"; }
  const char* fileName() const override { return "iterations.csv"; }
  bool applies(const ScenarioResult& result) const override {
    return std::ranges::any_of(result.runs, [](const Run& run) { return !run.iterations.empty(); });
  }
  std::string text(const ScenarioResult& result) const override {
    std::string text = kColumnsOfIterations;
    for (const Run& run : result.runs) {
      for (const Iteration& iteration : run.iterations) {
        CsvLine line;
        line.add(scenarioName(result));
        line.add(result.seed);
        line.add(run.strategy);
        line.add(run.block);
        line.add(nameOf(run.arm));
        line.add(nameOf(run.status));
        line.add(iteration.index);
        line.add(iteration.start_ms);
        line.add(iteration.ms);
        line.add(iteration.attempts);
        line.add(iteration.exposed_ms.value_or(std::nan("")));
        line.add(strikesWithin(run, iteration));
        text += std::move(line).finish();
      }
    }
    return text;
  }
};

}  // namespace

std::unique_ptr<Renderer> makeIterationsRenderer() {
  return std::make_unique<IterationsRenderer>();
}

}  // namespace faultline::reports
