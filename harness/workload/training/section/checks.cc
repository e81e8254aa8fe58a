#include "harness/workload/training/section/checks.h"

#include <fmt/format.h>

#include "harness/scenario/record_reader.h"

namespace faultline::scenario {

void checkTraining(const WorkloadChecking& checking) {
  const Gradient& gradient = checking.scenario.workload.gradient;
  Findings& findings = checking.findings;
  const auto fail = [&](std::string_view path, std::string message) {
    findings.add(locate(checking.root, path), std::move(message));
  };
  if (!findings.usable({"workload.gradient.size", "workload.gradient.dtype"})) return;
  const Bytes element = sizeOf(gradient.dtype);
  if (gradient.size % element != 0) {
    fail("workload.gradient.size",
         fmt::format("size: {} is not a whole number of elements of {} bytes",
                     formatSize(gradient.size), element));
    return;
  }
  if (!findings.usable({"workload.gradient.buckets"})) return;
  const Bytes elements = gradient.size / element;
  if (elements > 0 && gradient.buckets > elements) {
    fail("workload.gradient.buckets",
         fmt::format("buckets: {} are too many for {} ({} elements)", gradient.buckets,
                     formatSize(gradient.size), elements));
  }
}

Bytes trainingData(const Scenario& scenario) {
  constexpr Bytes kCopies = 3;  // its own gradient, the sum, the state
  return kCopies * scenario.workload.gradient.size;
}

}  // namespace faultline::scenario
