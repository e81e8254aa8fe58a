#include "base/thread.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <string>
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
    const std::string attempt = fmt::format("start the thread {}", name);
    const int why = error.code().value();
    // glibc does without clone3 where the kernel does not know it, and not where it is forbidden.
    started = why == EAGAIN ? cannotStart(why, attempt) : callRefused(why, "clone3", attempt);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace faultline
