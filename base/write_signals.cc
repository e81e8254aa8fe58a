#include "base/write_signals.h"

#include <cerrno>
#include <ctime>

namespace faultline {

WithoutWriteSignals::WithoutWriteSignals() {
  sigset_t waiting;
  sigemptyset(&waiting);
  sigpending(&waiting);
  sigemptyset(&taken_);
  for (const int number : {SIGXFSZ, SIGPIPE}) {
    if (sigismember(&waiting, number) == 0) sigaddset(&taken_, number);
  }
  pthread_sigmask(SIG_BLOCK, &taken_, &before_);
}

WithoutWriteSignals::~WithoutWriteSignals() {
  const int error = errno;  // of the write
  const timespec none{};
  while (sigtimedwait(&taken_, nullptr, &none) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace faultline
