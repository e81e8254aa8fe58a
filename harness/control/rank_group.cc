#include "harness/control/rank_group.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "wire/message.h"

namespace faultline::run {
namespace {

// After SIGKILL a process is gone as soon as the kernel has torn it down.
constexpr Duration kKillBudget = 5s;
// A rank that has closed its messages is on its way out; the loop does not wait longer for its exit
// status.
constexpr Duration kExitBudget = 200ms;

}  // namespace

Result<RankGroup> RankGroup::start(const std::vector<launch::SpawnOptions>& processes,
                                   std::string_view what) {
  std::vector<Rank> ranks;
  for (const launch::SpawnOptions& options : processes) {
    auto process = launch::Process::spawn(options);
    if (!process.ok()) {
      return process.status().withContext(fmt::format("start {} {}", what, ranks.size()));
    }
    ranks.push_back(Rank{std::move(*process)});
  }
  return RankGroup(std::move(ranks), what);
}

Status RankGroup::drain(int rank, const Received& received) {
  Rank& self = ranks_[rank];
  for (;;) {
    auto message = self.process.messages().receive();
    if (!message.ok()) {
      self.silent = true;
      if (message.status().code() != Code::kUnavailable) return message.status();
      const auto ended = self.process.waitFor(kExitBudget);
      const std::variant<wire::Gone> gone(
          wire::Gone{ended.ok() ? ended->toString() : ended.status().message()});
      return received(rank, wire::toJson(gone));
    }
    if (!*message) return okStatus();
    if (wire::isGone(**message)) {
      return errorf(Code::kInvalidArgument, "it says of itself that it is gone");
    }
    RETURN_IF_ERROR(received(rank, **message));
  }
}

Status RankGroup::poll(Duration timeout, Interrupt& interrupt, const Received& received) {
  std::vector<pollfd> waiting{{interrupt.fd(), POLLIN, 0}};
  std::vector<int> order;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].silent) continue;
    waiting.push_back({ranks_[rank].process.messages().fd(), POLLIN, 0});
    order.push_back(static_cast<int>(rank));
  }
  const timespec pause{.tv_sec = duration_cast<std::chrono::seconds>(timeout).count(),
                       .tv_nsec = (timeout % 1s).count()};
  const int ready = ppoll(waiting.data(), waiting.size(), &pause, nullptr);
  if (ready < 0 && errno != EINTR) return Status::fromErrno(errno, "wait for the ranks");
  for (std::size_t i = 0; i < order.size() && ready > 0; ++i) {
    if (waiting[i + 1].revents == 0) continue;
    RETURN_IF_ERROR(
        drain(order[i], received).withContext(fmt::format("listen to {} {}", what_, order[i])));
  }
  return okStatus();
}

void RankGroup::broadcast(const nlohmann::json& message) {
  for (Rank& rank : ranks_) {
    // One that has just died is noticed by poll.
    if (!rank.silent) (void)rank.process.messages().send(message);
  }
}

Status RankGroup::kill() {
  Status first;
  for (Rank& rank : ranks_) {
    if (const Status status = rank.process.signal(SIGKILL); first.ok()) first = status;
  }
  for (Rank& rank : ranks_) {
    const auto ended = rank.process.waitFor(kKillBudget);
    if (first.ok()) first = ended.status();
    rank.silent = true;
  }
  return first;
}

bool RankGroup::allEnded() const { return std::ranges::all_of(ranks_, &Rank::silent); }

}  // namespace faultline::run
