#include "harness/site/hosts/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/limits.h"
#include "harness/site/hosts/greeting.h"
#include "harness/site/hosts/printed_text.h"

namespace faultline::hosts {
namespace {

constexpr std::size_t kErrorTail = 2000;

}  // namespace

Result<Connection> Connection::start(const Launcher& launcher, const std::string& host,
                                     const std::vector<std::string>& command) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return callRefused(errno, "socketpair", "make a channel to a host");
  }
  UniqueFd near(ends[0]);
  const UniqueFd far(ends[1]);
  UniqueFd again(::fcntl(near.get(), F_DUPFD_CLOEXEC, 0));
  if (!again) return Status::fromErrno(errno, "make a channel to a host");
  ASSIGN_OR_RETURN(UniqueFd errors, makePrintedText());
  launch::SpawnOptions options;
  options.arguments = command;
  ASSIGN_OR_RETURN(options.executable, inPath(command.front()));
  options.foreign = true;  // Ctrl-C of our terminal is for us, who end it in order
  options.stdin_fd = far.get();
  options.stdout_fd = far.get();
  options.stderr_fd = errors.get();
  auto process = launch::Process::spawn(options);
  if (!process.ok()) return process.status().withContext("host " + host);
  return Connection(launcher, host, std::move(*process), std::move(near), std::move(again),
                    std::move(errors));
}

std::optional<Status> Connection::greeted() {
  constexpr int kMostReads = 4;  // other hosts have their turn
  std::array<char, 4096> bytes;
  const std::size_t before = said_.size();
  bool ended = false;
  for (int reads = 0; reads < kMostReads && !ended;) {
    const ssize_t size = ::recv(near_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    ended = size <= 0;
    if (!ended) said_.append(bytes.data(), static_cast<std::size_t>(size));
    ++reads;
  }
  if (said_.size() > before) {
    if (auto status = readGreeting(said_, host_)) return status;
  }
  if (!ended) return std::nullopt;
  const std::string words =
      said_.empty() ? "" : fmt::format(", after it said '{}'", excerpt(said_));
  return errorf(Code::kUnavailable, "host {}: no agent is there{}: {}", host_, words,
                howItEnded(kExitBudget));
}

std::string Connection::howItEnded(Duration budget) {
  const auto ended = process_.waitFor(budget);
  const std::string how = ended.ok() ? ended->toString() : "it still runs";
  const std::string why = reasonOf(*launcher_, printedText(errors_.get(), kErrorTail));
  return why.empty() ? how : fmt::format("{}, {}", how, why);
}

void Connection::kill() {
  const auto ended = process_.tryWait();
  if (!ended.ok() || *ended) return;  // by itself, and what it had started with it
  // It leads a session of its own, and so a group. Not reaped yet: the number is still its.
  ::kill(-process_.pid(), SIGKILL);
}

void Connection::hangUp() {
  // Copies of the descriptor would keep the other end waiting.
  ::shutdown(again_.get(), SHUT_WR);
}

}  // namespace faultline::hosts
