#include "harness/command/command.h"

#include <algorithm>

namespace faultline::command {

const Metric* Command::find(std::string_view metric) const {
  const auto found = std::ranges::find(metrics, metric, &Metric::name);
  return found == metrics.end() ? nullptr : &*found;
}

std::vector<std::string_view> Command::metricNames() const {
  std::vector<std::string_view> names;
  for (const Metric& metric : metrics) names.emplace_back(metric.name);
  return names;
}

}  // namespace faultline::command
