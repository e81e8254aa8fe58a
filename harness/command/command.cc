#include "harness/command/command.h"

#include <algorithm>

namespace faultline::command {

const Metric* Command::find(std::string_view metric) const {
  const auto found = std::ranges::find(metrics, metric, &Metric::name);
  return found == metrics.end() ? nullptr : &*found;
}

}  // namespace faultline::command
