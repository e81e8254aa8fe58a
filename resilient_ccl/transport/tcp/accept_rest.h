#pragma once

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"

namespace faultline::transport::tcp {

/// When `accept` fails because the process, or the machine, has run out of something, the
/// connection stays where it is and its listener readable: whoever watches it rests for a while
/// instead, and says so once.
class AcceptRest {
 public:
  explicit AcceptRest(Duration length) : length_(length) {}

  /// `accept` has failed; `who` has to wait, if that is why. Whether a rest begins.
  bool begin(int error, TimePoint now, const std::string& who) {
    if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return false;
    until_ = now + length_;
    if (std::exchange(said_, true)) return true;
    spdlog::warn("{} has to wait: {}{}", who, std::generic_category().message(error),
                 limitBehind(error));
    return true;
  }
  bool over(TimePoint now) const { return now >= until_; }

 private:
  Duration length_;
  TimePoint until_{};
  bool said_ = false;
};

}  // namespace faultline::transport::tcp
