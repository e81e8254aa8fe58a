#include "harness/site/hosts/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/limits.h"
#include "harness/site/hosts/greeting.h"

namespace faultline::hosts {
namespace {

constexpr off_t kMostErrors = 1 << 20;
constexpr std::size_t kErrorTail = 500;

/// Somebody else's errors must neither stop them nor fill this machine.
Result<UniqueFd> makeErrors() {
  UniqueFd fd(::memfd_create("faultline-host", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), kMostErrors) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0) {
    return Status::fromErrno(errno, "make room for what ssh says");
  }
  return fd;
}

}  // namespace

std::string inPath(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  // execvp's search: the child's exec takes a path.
  const char* const path = std::getenv("PATH");
  std::string_view left = path == nullptr ? "/usr/bin:/bin" : path;
  while (!left.empty()) {
    const std::string_view folder = left.substr(0, left.find(':'));
    left.remove_prefix(std::min(folder.size() + 1, left.size()));
    std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return name;
}

Result<Connection> Connection::start(const std::string& host,
                                     const std::vector<std::string>& command) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return callRefused(errno, "socketpair", "make a channel to a host");
  }
  UniqueFd near(ends[0]);
  const UniqueFd far(ends[1]);
  UniqueFd again(::fcntl(near.get(), F_DUPFD_CLOEXEC, 0));
  if (!again) return Status::fromErrno(errno, "make a channel to a host");
  ASSIGN_OR_RETURN(UniqueFd errors, makeErrors());
  launch::SpawnOptions options;
  options.arguments = command;
  options.executable = inPath(command.front());
  options.foreign = true;  // Ctrl-C of our terminal is for us, who end it in order
  options.stdin_fd = far.get();
  options.stdout_fd = far.get();
  options.stderr_fd = errors.get();
  auto process = launch::Process::spawn(options);
  if (!process.ok()) return process.status().withContext("host " + host);
  return Connection(host, std::move(*process), std::move(near), std::move(again),
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
  const off_t end = ::lseek(errors_.get(), 0, SEEK_CUR);  // up to which it has been written
  const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(kErrorTail));
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, end - begin)), '\0');
  const ssize_t got = ::pread(errors_.get(), text.data(), text.size(), begin);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text.empty() ? how : fmt::format("{}, '{}'", how, excerpt(text));
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
