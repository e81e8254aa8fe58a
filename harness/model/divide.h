#pragma once

#include <cstdint>

namespace faultline::model {

/// value / by, rounded up; neither is negative, and `by` is not 0.
constexpr std::int64_t divideUp(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

}  // namespace faultline::model
