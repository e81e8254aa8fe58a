#include "harness/control/interrupt.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>

#include "base/limits.h"

namespace faultline::run {
namespace {

/// As by nohup, or in a script's background jobs. A signal that is ignored and blocked still comes
/// to a descriptor.
bool isIgnored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Result<Interrupt> Interrupt::watch() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (!isIgnored(number)) sigaddset(&signals, number);
  }
  if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) {
    return Status::fromErrno(errno, "block the interrupt signals");
  }
  UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return callRefused(errno, "signalfd4", "watch the interrupt signals");
  return Interrupt(std::move(fd));
}

bool Interrupt::pending() {
  signalfd_siginfo info;
  if (!seen_ && read(fd_.get(), &info, sizeof(info)) == sizeof(info)) seen_ = true;
  return seen_;
}

}  // namespace faultline::run
