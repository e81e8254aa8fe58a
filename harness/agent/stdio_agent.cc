#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "base/unique_fd.h"
#include "base/version.h"
#include "harness/agent/agent.h"
#include "wire/greeting.h"

namespace faultline::agent {
namespace {

/// All of it.
bool write(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd, text.data(), text.size());
    if (size < 0 && errno != EINTR) return false;
    if (size > 0) text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace

int stdioAgentMain() {
  constexpr int kExitError = 1;
  std::signal(SIGPIPE, SIG_IGN);  // a controller that is gone is an error that says so
  // What else is printed here, by whomever, must not come between the messages.
  UniqueFd in(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  UniqueFd out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!in || !out || !null || ::dup2(null.get(), STDIN_FILENO) < 0 ||
      ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return kExitError;
  }
  const std::string greeting =
      fmt::format("{}{} {}\n", wire::kGreetingMark, versionNumber(), wire::kAgentVersion);
  if (!write(out.get(), greeting)) return kExitError;
  launch::MessageChannel controller(std::move(in), std::move(out));
  (void)serve(controller, [] { return std::vector<wire::RailState>(); });
  return 0;
}

}  // namespace faultline::agent
