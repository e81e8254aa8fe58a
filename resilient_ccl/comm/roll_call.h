#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"

namespace faultline::comm {

/// Finds out who keeps a collective waiting although all links live: every member is asked how many
/// collectives of the communicator it has begun. Pure: no clock, no network.
class RollCall {
 public:
  /// An answer takes a round trip, and some repetitions on a lossy network.
  static constexpr Duration kAnswerTime = 200ms;

  /// Of collective `number`, counted from 0. `members`: processes, in any order.
  RollCall(std::uint32_t communicator, std::uint64_t number, const std::vector<int>& members,
           TimePoint now);

  std::uint32_t communicator() const { return communicator_; }
  std::uint64_t number() const { return number_; }

  /// `process` has begun so many collectives of this communicator. Others than members are ignored.
  void present(int process, std::uint64_t begun);
  /// Whether nothing more is to be waited for.
  bool over(TimePoint now) const;

  /// "rank(s) 1 have not called it, rank(s) 0, 2 wait": who is where, as far as they have answered.
  std::string result() const;

 private:
  enum class State : std::uint8_t { kNoAnswer, kMissing, kWaiting };

  std::string ranksThat(State state) const;

  std::uint32_t communicator_;
  std::uint64_t number_;
  TimePoint deadline_;
  std::map<int, State> members_;
};

}  // namespace faultline::comm
