#pragma once

#include <unistd.h>

namespace faultline {

/// Remembers which process made it. A child of fork has copies of the objects, and shares what
/// their descriptors stand for with its parent: what ends one of its copies must not change that.
class OwnProcess {
 public:
  bool here() const { return getpid() == process_; }

 private:
  pid_t process_ = getpid();
};

}  // namespace faultline
