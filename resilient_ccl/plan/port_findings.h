#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "resilient_ccl/plan/port_test.h"

namespace faultline::plan {

/// What tests have found of the ports, and what of it is planned for. A port that one test found a
/// little slow may be a whole one whose processor, or whose acknowledgements, came late for as long
/// as the test took: more rounds of the same test do not tell, another test soon after it does. So
/// such a port is *doubted* until the next test, which begins with what was known before, and finds
/// it slow again or whole. Meanwhile it is planned for as found, unless others are much slower:
/// they are reason enough for calls that are late, and a plan that spares a whole port costs more
/// time than a few calls without one that is a little slow. Pure.
class PortFindings {
 public:
  /// A port that is slower than before by PortTest::kOther, but not slower than this, is a little
  /// slow; noise was seen to make 0.72 to 0.85 of whole ports, and hardly ever less.
  static constexpr double kLittle = 0.65;

  explicit PortFindings(std::size_t ranks) : sure_(ranks), latest_(ranks), shares_(ranks) {}

  /// What the next test begins with.
  const std::vector<PortShare>& sure() const { return sure_; }
  /// What ports are planned for. Both are by rank.
  const std::vector<PortShare>& shares() const { return shares_; }
  /// Whether another test should follow soon.
  bool doubted() const { return doubted_; }

  /// A test that began with sure() has found this. True: shares() are others now.
  bool found(const std::vector<PortShare>& found) {
    const bool muchSlower = std::ranges::any_of(
        found, [](const PortShare& port) { return std::min(port.send, port.receive) < kLittle; });
    std::vector<PortShare> planned = found, sure = found;
    bool changed = false;
    doubted_ = false;
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
      for (double PortShare::*side : {&PortShare::send, &PortShare::receive}) {
        const double before = sure_[rank].*side;
        const bool again = isLittle(latest_[rank].*side, before);
        if (!again && isLittle(found[rank].*side, before)) {
          doubted_ = true;
          sure[rank].*side = before;
          if (muchSlower) planned[rank].*side = before;
        }
        changed |= PortTest::differ(shares_[rank].*side, planned[rank].*side);
      }
    }
    if (changed) shares_ = planned;
    sure_ = sure;
    latest_ = found;
    return changed;
  }

 private:
  static bool isLittle(double share, double before) {
    return share >= kLittle && share < before && PortTest::differ(share, before);
  }

  std::vector<PortShare> sure_, latest_, shares_;
  bool doubted_ = false;
};

}  // namespace faultline::plan
