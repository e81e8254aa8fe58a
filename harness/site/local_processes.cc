#include "harness/site/local_processes.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "wire/message.h"

namespace faultline::site {
namespace {

// After SIGKILL a process is gone as soon as the kernel has torn it down.
constexpr Duration kKillBudget = 5s;
// One that has closed its messages is on its way out; the loop does not wait longer for its exit
// status.
constexpr Duration kExitBudget = 200ms;

}  // namespace

Result<std::unique_ptr<Processes>> LocalProcesses::start(
    const std::vector<launch::SpawnOptions>& processes, std::string_view what) {
  std::vector<One> started;
  for (const launch::SpawnOptions& options : processes) {
    auto process = launch::Process::spawn(options);
    if (!process.ok()) {
      return process.status().withContext(fmt::format("start {} {}", what, started.size()));
    }
    started.push_back(One{std::move(*process)});
  }
  return std::unique_ptr<Processes>(new LocalProcesses(std::move(started), what));
}

Status LocalProcesses::drain(std::size_t index, const Received& received) {
  One& self = processes_[index];
  for (;;) {
    auto message = self.process.messages().receive();
    if (!message.ok()) {
      self.silent = true;
      if (message.status().code() != Code::kUnavailable) return message.status();
      const auto ended = self.process.waitFor(kExitBudget);
      const std::variant<wire::Gone> gone(
          wire::Gone{ended.ok() ? ended->toString() : ended.status().message()});
      return received(static_cast<int>(index), wire::toJson(gone));
    }
    if (!*message) return okStatus();
    if (wire::isGone(**message)) {
      return errorf(Code::kInvalidArgument, "it says of itself that it is gone");
    }
    RETURN_IF_ERROR(received(static_cast<int>(index), **message));
  }
}

Status LocalProcesses::poll(Duration timeout, int interruptFd, const Received& received) {
  std::vector<pollfd> waiting{{interruptFd, POLLIN, 0}};
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    if (processes_[index].silent) continue;
    waiting.push_back({processes_[index].process.messages().fd(), POLLIN, 0});
    order.push_back(index);
  }
  const timespec pause{.tv_sec = duration_cast<std::chrono::seconds>(timeout).count(),
                       .tv_nsec = (timeout % 1s).count()};
  const int ready = ppoll(waiting.data(), waiting.size(), &pause, nullptr);
  if (ready < 0 && errno != EINTR) return Status::fromErrno(errno, "wait for the processes");
  for (std::size_t i = 0; i < order.size() && ready > 0; ++i) {
    if (waiting[i + 1].revents == 0) continue;
    RETURN_IF_ERROR(
        drain(order[i], received).withContext(fmt::format("listen to {} {}", what_, order[i])));
  }
  return okStatus();
}

void LocalProcesses::broadcast(const nlohmann::json& message) {
  for (One& one : processes_) {
    // One that has just died is noticed by poll.
    if (!one.silent) (void)one.process.messages().send(message);
  }
}

Status LocalProcesses::kill() {
  Status first;
  for (One& one : processes_) {
    if (const Status status = one.process.signal(SIGKILL); first.ok()) first = status;
  }
  for (One& one : processes_) {
    const auto ended = one.process.waitFor(kKillBudget);
    if (first.ok()) first = ended.status();
    one.silent = true;
  }
  return first;
}

bool LocalProcesses::allEnded() const { return std::ranges::all_of(processes_, &One::silent); }

}  // namespace faultline::site
