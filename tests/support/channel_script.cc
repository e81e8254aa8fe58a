#include "tests/support/channel_script.h"

#include <algorithm>
#include <array>
#include <set>

namespace faultline::test {

using channel::Policy;
using Kind = Action::Kind;

bool Action::breaksRail() const {
  return kind == Kind::kPortDown || kind == Kind::kBlackHole || kind == Kind::kReset;
}

std::string Action::toString() const {
  constexpr std::array<std::string_view, 13> kNames{
      "messages", "note", "port down", "black hole", "reset",       "management down", "pause",
      "slow",     "kill", "exit",      "doubt",      "close sends", "close receives"};
  std::string text =
      fmt::format("{:9.3f} ms  {}", toMilliseconds(at), kNames.at(static_cast<std::size_t>(kind)));
  if (phase) {
    text += fmt::format(", {} after the rail is {}", formatDuration(after), phaseName(*phase));
  }
  const bool ofEnd = kind == Kind::kMessages || kind == Kind::kNote || kind == Kind::kPortDown ||
                     kind == Kind::kPause || kind == Kind::kKill || kind == Kind::kExit ||
                     kind == Kind::kDoubt || closesStream();
  if (ofEnd) text += fmt::format(", end {}", end);
  if (breaksRail() || kind == Kind::kSlow) text += fmt::format(", rail {}", rail);
  if (kind == Kind::kMessages) {
    text += fmt::format(", {} x {} bytes, receives posted at {:.3f} ms", count, bytes,
                        toMilliseconds(length));
    if (room >= 0) text += fmt::format(", for {} bytes", room);
    if (!sent) text += ", never sent";
    if (!received) text += ", never received";
  } else if (length == kForGood) {
    text += ", for good";
  } else if (length > Duration::zero()) {
    text += fmt::format(", for {:.3f} ms", toMilliseconds(length));
  }
  if (kind == Kind::kBlackHole && !(fromEnd0 && fromEnd1)) {
    text += fmt::format(", of what end {} sends", fromEnd0 ? 0 : 1);
  }
  if (stream != 0) text += fmt::format(", stream {}", stream);
  if (beforehand) text += ", from before the beginning";
  if (kind == Kind::kSlow) text += fmt::format(", {:.0f} bytes/s", rate);
  return text;
}

bool Script::fatal() const {
  std::set<int> dead;
  for (const Action& action : actions) {
    if (action.kind == Kind::kKill || action.kind == Kind::kExit) return true;
    const bool broken = action.breaksRail() || action.carriesNothing();
    if (broken && action.length == Action::kForGood) dead.insert(action.rail);
  }
  return static_cast<int>(dead.size()) == options.link.rails;
}

bool Script::closesStreams() const { return std::ranges::any_of(actions, &Action::closesStream); }

SimOptions Script::worldOptions() const {
  SimOptions world = options;
  for (const Action& action : actions) {
    if (!action.beforehand) continue;
    world.deadRails.push_back({.rail = action.rail,
                               .port = action.kind == Kind::kPortDown,
                               .end = action.end,
                               .fromEnd0 = action.fromEnd0,
                               .fromEnd1 = action.fromEnd1});
  }
  return world;
}

std::string Script::toString() const {
  const auto& link = options.link;
  std::string text = fmt::format(
      "{} rails, {}{}, {}{}, tail budget {}, loss {:.3f}, repeated {:.2f}, held up {:.3f}, jitter "
      "{}, fence {}, opening {}, suspect after {}{}, ports {} and told of {} later\n",
      link.rails, link.policy == Policy::kPull ? "pull" : "pinned",
      link.resilient ? "" : " without resilience", options.lateWrites ? "late writes" : "placed",
      options.mixed ? " (mixed)" : "", link.tailBudget, options.datagramLoss,
      options.datagramDuplication, options.datagramsHeld, formatDuration(options.datagramJitter),
      formatDuration(options.fenceTime), formatDuration(options.openTime),
      formatDuration(link.suspectAfter), options.backsOff ? ", backs off" : "",
      options.portsSeen ? "seen" : "not seen", formatDuration(options.portEventDelay));
  for (const Action& action : actions) text += "  " + action.toString() + "\n";
  return text;
}

}  // namespace faultline::test
