#include "tests/support/victim.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tests/support/poll_until.h"
#include "tests/support/usual_signals.h"

namespace faultline::test {

Victim::Victim(const std::vector<std::string>& arguments, Listen listen,
               const std::string& directory) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  output_.reset(ends[0]);
  const UniqueFd writeEnd(ends[1]);
  int started[2];
  if (::pipe2(started, O_CLOEXEC) != 0) return;
  const UniqueFd runs(started[0]);
  UniqueFd startsYet(started[1]);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setpgid(0, 0);
    testing::takeSignalsAsUsual();
    ::dup2(writeEnd.get(), listen == Listen::kStdout ? STDOUT_FILENO : STDERR_FILENO);
    if (::chdir(directory.c_str()) == 0) ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);  // also here: whichever comes first
  // Until it is a program of its own it holds all that this one does, namespaces, too.
  startsYet.reset();
  char nothing = 0;
  while (::read(runs.get(), &nothing, 1) < 0 && errno == EINTR) {
  }
}

Victim::~Victim() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

bool Victim::awaitOutput(const std::string& text, Duration budget) {
  const TimePoint deadline = now() + budget;
  while (printed_.find(text) == std::string::npos) {
    const Duration left = deadline - now();
    pollfd ready{output_.get(), POLLIN, 0};
    const int milliseconds =
        static_cast<int>(duration_cast<std::chrono::milliseconds>(left).count());
    if (left <= Duration::zero() || ::poll(&ready, 1, milliseconds) <= 0) return false;
    char buffer[4096];
    const ssize_t got = ::read(output_.get(), buffer, sizeof(buffer));
    if (got <= 0) return false;
    printed_.append(buffer, static_cast<std::size_t>(got));
  }
  return true;
}

bool Victim::killAndWatch(Targets targets, NamespaceObserver& observer) {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  if (::waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status)) return false;
  tree_ = processTree(pid_);
  for (const UniqueFd& fd : networkNamespacesOf(tree_)) {
    if (!observer.watch(fd.get()).ok()) return false;
  }
  ::kill(targets == Targets::kWholeGroup ? -pid_ : pid_, SIGKILL);
  killedAt_ = now();
  return true;
}

bool Victim::allGone(NamespaceObserver& observer, Duration budget) {
  return pollUntil(killedAt_ + budget - now(), [&] {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    for (const ProcessId& process : tree_) {
      if (!isGone(process)) return false;
    }
    const auto alive = observer.alive();
    return alive.ok() && *alive == 0;
  });
}

}  // namespace faultline::test
