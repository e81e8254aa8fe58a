#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "resilient_ccl/channel/link.h"

// When a link is given up: budgets, doubts, and what is said then.

namespace faultline::channel {

void Link::checkBudget(TimePoint now) {
  if (!options_.resilient || !busy()) return;
  const Duration budget = options_.giveUp;
  const auto allowance = [&] { return formatDuration(budget); };
  const auto spent = [&](TimePoint since) { return now - std::max(since, busySince_) > budget; };
  if (noRailSince_ != TimePoint::max() && spent(noRailSince_)) {
    fail(errorf(Code::kUnavailable, "no rail to {} came back within the give-up budget of {} ({})",
                identity_.name, allowance(), railHistory()));
    return;
  }
  if (spent(lastHeard_)) {
    constexpr std::array<std::string_view, 3> kElsewhere{
        "", ", though others hear it: the paths to it are dead",
        ", and nobody who was asked hears it: it is gone for all"};
    fail(errorf(Code::kDeadlineExceeded, "{} has not been heard on any path for {}{} ({})",
                identity_.name, allowance(), kElsewhere.at(static_cast<std::size_t>(elsewhere_)),
                railHistory()));
    return;
  }
  // Late, so that what others say is still true then.
  const bool missing = now - std::max(lastHeard_, busySince_) > budget * 3 / 4;
  if (missing && !missing_) {
    elsewhere_ = Reach::kUnknown;
    io_.peerMissing();
  }
  missing_ = missing;
  const std::optional<TimePoint> waiting = delivery_.waitingSince(liveRails() > 0);
  if (waiting && waited(*waiting, now) > budget) {
    fail(errorf(Code::kDeadlineExceeded,
                "nothing has been delivered to {} for {}, though it answers ({})", identity_.name,
                allowance(), railHistory()));
    return;
  }
  for (int rail = 0; rail < options_.rails; ++rail) {
    const Rail& state = rails_[rail];
    if (state.phase == Phase::kFencing && spent(state.failedAt)) {
      fail(errorf(Code::kDeadlineExceeded, "rail {} to {} could not be fenced at {} within {}",
                  rail, identity_.name, state.localFenced ? "the other end" : "this end",
                  allowance()));
      return;
    }
  }
}

void Link::doubt(TimePoint now) {
  if (failed_ || !options_.resilient || doubted_) return;
  doubted_ = examine(now);
  io_.watchRefusals(true);
}

void Link::checkDoubt() {
  if (!doubted_) return;
  for (int path = 0; path < paths(); ++path) {
    if (prober_.reach(path, *doubted_) != Reach::kAnswers) continue;
    doubted_.reset();
    io_.watchRefusals(false);
    return;
  }
}

/// Three things must come together: whatever raised the doubt, that no rail is left, and the word
/// of the peer's host. A firewall may make up each of them; not all three of a peer that answers.
void Link::onRefused(TimePoint /*now*/) {
  checkDoubt();
  if (failed_ || !doubted_) return;
  if (liveRails() > 0) return;
  fail(errorf(Code::kUnavailable,
              "the process of {} is gone: its rails have ended, and its host refuses what is sent "
              "to it",
              identity_.name));
}

std::string Link::railHistory() const {
  std::string history;
  std::vector<std::string> losing;
  Bytes frame = 0;
  for (int rail = 0; rail < options_.rails; ++rail) {
    const Rail& state = rails_[rail];
    std::string_view word = causeName(state.lastCause);
    if (state.phase == Phase::kUp) word = "up";
    if (state.epoch == 0) word = "never connected";
    history += fmt::format("{}rail {}: {}", rail == 0 ? "" : ", ", rail, word);
    if (!state.framesTold) continue;
    losing.push_back(fmt::format("{}", rail));
    frame = state.frame;
  }
  if (losing.empty()) return history;
  return history + fmt::format(
                       "; of rail {}, datagrams of {} bytes are lost and short ones are not: look "
                       "at the MTU of every port along the path",
                       fmt::join(losing, " and "), frame);
}

void Link::fail(const Status& why) {
  if (failed_) return;
  failed_ = true;
  for (const auto& [index, failover] : std::exchange(failovers_, {}))
    io_.failedOver(failover.record);
  io_.linkFailed(why);
}

}  // namespace faultline::channel
