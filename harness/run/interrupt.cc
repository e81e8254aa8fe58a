#include "harness/run/interrupt.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>

namespace faultline::run {

Result<Interrupt> Interrupt::watch() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) {
    return Status::fromErrno(errno, "block the interrupt signals");
  }
  UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return Status::fromErrno(errno, "watch the interrupt signals");
  return Interrupt(std::move(fd));
}

bool Interrupt::pending() {
  signalfd_siginfo info;
  if (!seen_ && read(fd_.get(), &info, sizeof(info)) == sizeof(info)) seen_ = true;
  return seen_;
}

}  // namespace faultline::run
