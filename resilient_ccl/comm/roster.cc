#include "resilient_ccl/comm/roster.h"

#include <fmt/format.h>

#include <algorithm>

namespace faultline::comm {

int Roster::count(State state) const {
  return static_cast<int>(std::ranges::count(states_, state));
}

std::vector<int> Roster::present() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (isHere(rank)) ranks.push_back(rank);
  }
  return ranks;
}

std::string Roster::list(State state) const {
  std::string ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (states_[rank] == state) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  }
  return ranks;
}

std::string Roster::objection() const {
  return fmt::format(
      "rank(s) {} are here, which is not more than half of {}, and rank(s) {} are silent: they may "
      "be going on without these",
      list(State::kHere), size(), list(State::kSilent));
}

}  // namespace faultline::comm
