#include "harness/agent/relayed_rank.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>
#include <string_view>

#include "base/json.h"
#include "base/limits.h"

namespace faultline::agent {
namespace {

// One that says or prints something without end leaves others their turn.
constexpr int kMessagesAtOnce = 64;
constexpr std::size_t kLoggedAtOnce = 64 << 10;
// One that has ended adds nothing; who has inherited its pipe may.
constexpr int kAllMessages = std::numeric_limits<int>::max();
constexpr std::size_t kLargestPipe = 1 << 20;

}  // namespace

Result<RelayedRank> RelayedRank::start(const wire::StartRank& message, int namespaceFd) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return callRefused(errno, "pipe2", "make a pipe for what a rank logs");
  }
  UniqueFd log(ends[0]);
  const UniqueFd logEnd(ends[1]);
  (void)::fcntl(logEnd.get(), F_SETFL, 0);  // the rank's end waits
  launch::SpawnOptions options;
  options.arguments = {"faultline", "rank"};
  options.namespace_fd = namespaceFd;
  options.environment = message.environment;
  options.stdout_fd = logEnd.get();
  options.stderr_fd = logEnd.get();
  ASSIGN_OR_RETURN(launch::Process process, launch::Process::spawn(options));
  return RelayedRank(std::move(process), std::move(log));
}

Status RelayedRank::tell(const std::string& text) {
  ASSIGN_OR_RETURN(const nlohmann::json message, parseJson(text));
  (void)process_.messages().send(message);
  return okStatus();
}

void RelayedRank::addTo(std::vector<pollfd>& waiting) {
  waiting.push_back({silent_ ? -1 : process_.messages().fd(), POLLIN, 0});
  waiting.push_back({log_.get(), POLLIN, 0});
  waiting.push_back({process_.pidFd(), POLLIN, 0});
}

Result<std::optional<std::string>> RelayedRank::pump(int job, const Tell& tell) {
  // Looked at first: what it has said before its end is all there then.
  ASSIGN_OR_RETURN(const std::optional<launch::ExitStatus> ended, process_.tryWait());
  RETURN_IF_ERROR(passMessages(job, tell, ended ? kAllMessages : kMessagesAtOnce));
  RETURN_IF_ERROR(passLog(job, tell, ended ? kLargestPipe : kLoggedAtOnce));
  if (!ended) return std::optional<std::string>();
  if (const std::string rest = logged_.rest(); !rest.empty()) {
    RETURN_IF_ERROR(tell(wire::Logged{job, rest}));
  }
  return std::optional(broken_.empty() ? ended->toString() : broken_);
}

Status RelayedRank::passMessages(int job, const Tell& tell, int most) {
  more_ = false;
  for (int passed = 0; !silent_ && passed < most; ++passed) {
    auto message = process_.messages().receive();
    if (!message.ok()) {
      silent_ = true;
      if (message.status().code() == Code::kUnavailable) return okStatus();
      broken_ = "it says what is no message: " + message.status().message();
      kill();
      return okStatus();
    }
    if (!*message) return okStatus();
    RETURN_IF_ERROR(tell(wire::RankSaid{job, launch::MessageChannel::textOf(**message)}));
  }
  more_ = !silent_;
  return okStatus();
}

Status RelayedRank::passLog(int job, const Tell& tell, std::size_t most) {
  std::array<char, 4096> bytes;
  for (std::size_t passed = 0; log_ && passed < most;) {
    const ssize_t size = ::read(log_.get(), bytes.data(), bytes.size());
    if (size > 0) {
      passed += static_cast<std::size_t>(size);
      const std::string_view now =
          logged_.add(std::string_view(bytes.data(), static_cast<std::size_t>(size)));
      if (!now.empty()) RETURN_IF_ERROR(tell(wire::Logged{job, std::string(now)}));
    } else if (size == 0) {
      log_.reset();
    } else if (errno != EINTR) {
      return errno == EAGAIN ? okStatus() : Status::fromErrno(errno, "read what a rank logs");
    }
  }
  return okStatus();
}

}  // namespace faultline::agent
