#include "resilient_ccl/comm/roll_call.h"

#include <algorithm>

#include "base/status.h"

namespace faultline::comm {

RollCall::RollCall(std::uint32_t communicator, std::uint64_t number,
                   const std::vector<int>& members, TimePoint now)
    : communicator_(communicator), number_(number), deadline_(now + kAnswerTime) {
  for (const int member : members) members_[member] = State::kNoAnswer;
}

void RollCall::present(int process, std::uint64_t begun) {
  const auto member = members_.find(process);
  if (member == members_.end()) return;
  member->second = begun > number_ ? State::kWaiting : State::kMissing;
}

bool RollCall::over(TimePoint now) const {
  return now >= deadline_ || std::ranges::none_of(members_, [](const auto& member) {
           return member.second == State::kNoAnswer;
         });
}

/// The message must reach the others in one record: what it is about stands first, and is short.
std::string RollCall::ranksThat(State state) const {
  constexpr int kMostNamed = 4;
  std::string list;
  int count = 0;
  for (const auto& [process, is] : members_) {
    if (is != state) continue;
    if (++count <= kMostNamed) list += fmt::format("{}{}", list.empty() ? "" : ", ", process);
  }
  if (count > kMostNamed) list += fmt::format(" and {} more", count - kMostNamed);
  return list;
}

std::string RollCall::result() const {
  std::string text;
  const auto add = [&](State state, std::string_view what) {
    const std::string ranks = ranksThat(state);
    if (ranks.empty()) return;
    text += fmt::format("{}rank(s) {} {}", text.empty() ? "" : ", ", ranks, what);
  };
  add(State::kMissing, "have not called it");
  add(State::kNoAnswer, "do not answer");
  add(State::kWaiting, "wait");
  return text;
}

}  // namespace faultline::comm
