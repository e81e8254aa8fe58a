#pragma once

#include "base/units.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// What pairs of ranks exchange: rank r with the rank half of all ranks further.
struct Pingpong {
  Bytes size = 64 << 10;  ///< of a message
  int exchanges = 20;     ///< of an iteration: there and back, one after the other
  static constexpr Bytes kMostBytes = Bytes{1}
                                      << 30;  ///< of bytes(): each message has memory of its own
  static constexpr int kMostExchanges = 10'000;
  bool operator==(const Pingpong&) const = default;

  Bytes bytes() const { return size * exchanges; }  ///< one way
};

/// Of a workload that is of this kind.
inline const Pingpong& pingpongOf(const Workload& workload) {
  static const Pingpong kUsual;
  const auto* const values = workload.own.as<Pingpong>();
  return values == nullptr ? kUsual : *values;
}

/// With whom a rank exchanges messages; `ranks` is even.
inline int partnerOf(int rank, int ranks) { return (rank + ranks / 2) % ranks; }

}  // namespace faultline::scenario
