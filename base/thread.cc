#include "base/thread.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <utility>

#include "base/limits.h"

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
    started = cannotStart(error.code().value(), fmt::format("start the thread {}", name));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace faultline
