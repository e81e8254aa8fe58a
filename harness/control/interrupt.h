#pragma once

#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::run {

/// Ctrl-C (SIGINT), SIGTERM and SIGHUP as a descriptor, so that a run ends in order: while it
/// exists the signals do not end the program. Those that were ignored stay ignored. To be made
/// before there are threads.
class Interrupt {
 public:
  static Result<Interrupt> watch();

  /// Readable once a signal has come.
  int fd() const { return fd_.get(); }
  /// Whether a signal has come; stays true.
  bool pending();

 private:
  explicit Interrupt(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  bool seen_ = false;
};

}  // namespace faultline::run
