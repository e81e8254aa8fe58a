#pragma once

#include <string>
#include <vector>

namespace faultline::comm {

/// Who of a job's processes goes on after a failure, as one of them sees it: a process is here when
/// it has said that it goes on, gone when its machine has said that it no longer exists, and silent
/// otherwise. Pure.
class Roster {
 public:
  Roster(int rank, int size) : states_(size, State::kSilent) { states_[rank] = State::kHere; }

  void here(int rank) { states_[rank] = State::kHere; }
  void gone(int rank) { states_[rank] = State::kGone; }
  /// It is here no longer, and may come again.
  void left(int rank) { states_[rank] = State::kSilent; }

  bool isHere(int rank) const { return states_[rank] == State::kHere; }
  bool isSilent(int rank) const { return states_[rank] == State::kSilent; }

  /// Nobody is left to be waited for.
  bool complete() const { return count(State::kSilent) == 0; }
  /// Whether those that are here may go on without the others: these are gone for certain, or those
  /// are more than half of all, which no two groups can be.
  bool mayGoOn() const { return complete() || 2 * count(State::kHere) > size(); }

  /// Ranks, in order.
  std::vector<int> present() const;
  /// Why `mayGoOn` is false.
  std::string objection() const;

 private:
  enum class State : unsigned char { kSilent, kHere, kGone };
  int size() const { return static_cast<int>(states_.size()); }
  int count(State state) const;
  std::string list(State state) const;

  std::vector<State> states_;  // by rank
};

}  // namespace faultline::comm
