#include "base/thread.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <utility>

namespace faultline {

Result<std::thread> startThread(const char* name, std::function<void()> run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread begins with the mask of its maker
  Result<std::thread> started = std::thread();
  try {
    started = std::thread(std::move(run));
    (void)pthread_setname_np(started->native_handle(), name);
  } catch (const std::system_error& error) {
    started = errorf(Code::kUnavailable,
                     "cannot start the thread {}: {}; is the limit of processes reached "
                     "(ulimit -u, pids.max of the container)?",
                     name, error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace faultline
