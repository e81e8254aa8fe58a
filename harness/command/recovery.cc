#include "harness/command/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace faultline::command {
namespace {

constexpr std::string_view kFailedWord = "failed";
constexpr std::string_view kLeftWord = "left";
constexpr std::string_view kRebuiltWord = "rebuilt ";

std::optional<RecoveryEvent> eventOf(std::string_view line) {
  using enum RecoveryEvent::Kind;
  if (line == kFailedWord) return RecoveryEvent{kFailed, 0};
  if (line == kLeftWord) return RecoveryEvent{kLeft, 0};
  if (!line.starts_with(kRebuiltWord)) return std::nullopt;
  line.remove_prefix(kRebuiltWord.size());
  int ranks = 0;
  const char* const end = line.data() + line.size();
  const auto [behind, error] = std::from_chars(line.data(), end, ranks);
  if (error != std::errc() || behind != end || ranks < 1) return std::nullopt;
  return RecoveryEvent{kRebuilt, ranks};
}

}  // namespace

Result<std::vector<RecoveryEvent>> RecoveryLines::read(std::string_view text) {
  std::vector<RecoveryEvent> events;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    const std::optional<RecoveryEvent> event = eventOf(line);
    if (!event) {
      return errorf(Code::kInvalidArgument,
                    "'{}' is none of 'failed', 'rebuilt N' (ranks) and 'left'", line.substr(0, 60));
    }
    events.push_back(*event);
    offset_ += static_cast<std::int64_t>(end) + 1;
    text.remove_prefix(end + 1);
  }
  return events;
}

void Rebuildings::wrong(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
}

std::optional<Rebuildings::Rebuilding> Rebuildings::told(int rank, const RecoveryEvent& event,
                                                         TimePoint when) {
  Process& process = states_[static_cast<std::size_t>(rank)];
  if (process.state == State::kLeft) {
    wrong(fmt::format("rank {} told of its communicator after it had left", rank));
    return std::nullopt;
  }
  using enum RecoveryEvent::Kind;
  switch (event.kind) {
    case kFailed:
      process = {State::kFailed, 0};
      if (!noticed_) noticed_ = when;
      return std::nullopt;
    case kLeft:
      if (!mayLose_) wrong(fmt::format("rank {} left, and all are to go on", rank));
      process = {State::kLeft, 0};
      return completed(when);
    case kRebuilt:
      if (process.state != State::kFailed) {
        wrong(fmt::format(
            "rank {} told of a new communicator, and not that the one before had failed", rank));
        return std::nullopt;
      }
      process = {State::kRebuilt, event.ranks};
      return completed(when);
  }
  return std::nullopt;
}

std::optional<Rebuildings::Rebuilding> Rebuildings::ended(int rank, TimePoint when) {
  Process& process = states_[static_cast<std::size_t>(rank)];
  if (process.state == State::kLeft) return std::nullopt;
  if (process.state == State::kFailed) {
    wrong(fmt::format("rank {} ended without a new communicator, and without telling that it left",
                      rank));
  }
  process.state = State::kEnded;
  return completed(when);
}

std::optional<Rebuildings::Rebuilding> Rebuildings::completed(TimePoint when) {
  if (!noticed_) return std::nullopt;
  Rebuilding made{.noticed = *noticed_, .resumed = when, .ranks = 0, .missing = {}};
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    const State state = states_[rank].state;
    if (state == State::kLeft || state == State::kEnded) {
      made.missing.push_back(static_cast<int>(rank));
    } else if (state != State::kRebuilt) {
      return std::nullopt;
    }
  }
  made.ranks = static_cast<int>(states_.size() - made.missing.size());
  if (made.ranks == 0) return std::nullopt;
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    Process& process = states_[rank];
    if (process.state != State::kRebuilt) continue;
    if (process.ranks != made.ranks) {
      wrong(fmt::format("rank {} told of a new communicator of {}, and {} of {} processes are left",
                        rank, process.ranks, made.ranks, states_.size()));
    }
    process = {};
  }
  if (!mayLose_ && !made.missing.empty()) {
    wrong(fmt::format("a new communicator has {} of {} ranks, and all are to go on", made.ranks,
                      states_.size()));
  }
  noticed_.reset();
  ++count_;
  return made;
}

std::string Rebuildings::problem() const {
  if (!problem_.empty()) return problem_;
  if (noticed_) return "not all ranks told of a new communicator after a failure";
  if (count_ == 0) return "no process told that its communicator failed and was built anew";
  return "";
}

}  // namespace faultline::command
