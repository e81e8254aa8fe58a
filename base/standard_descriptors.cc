#include "base/standard_descriptors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstddef>

namespace faultline {
namespace {

/// Whether it still leads to /dev/null: somebody may have put something else there.
bool isNull(int fd) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 && S_ISCHR(about.st_mode) && about.st_rdev == makedev(1, 3);
}

}  // namespace

StandardDescriptors::StandardDescriptors() {
  for (;;) {
    // The lowest that is free. A program that is executed finds it closed as before.
    const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd > STDERR_FILENO) ::close(fd);
    if (fd < 0 || fd > STDERR_FILENO) return;
    filled_[static_cast<std::size_t>(fd)] = true;
  }
}

StandardDescriptors::~StandardDescriptors() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (filled_[static_cast<std::size_t>(fd)] && isNull(fd)) ::close(fd);
  }
}

}  // namespace faultline
