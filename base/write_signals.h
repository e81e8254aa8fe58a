#pragma once

#include <signal.h>

namespace faultline {

/// While it exists, a write of the calling thread that passes the limit of file sizes, or finds
/// nobody at the other end of a pipe, is an error of the call and nothing else: its signal
/// (SIGXFSZ, SIGPIPE, which would end the program) is taken back. The signals' dispositions, which
/// are the whole program's and may be somebody else's, stay as they are.
class WithoutWriteSignals {
 public:
  WithoutWriteSignals();
  ~WithoutWriteSignals();
  WithoutWriteSignals(const WithoutWriteSignals&) = delete;
  WithoutWriteSignals& operator=(const WithoutWriteSignals&) = delete;

 private:
  sigset_t taken_;   // those that did not wait before
  sigset_t before_;  // the thread's mask
};

}  // namespace faultline
