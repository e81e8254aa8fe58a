#include "base/limit_text.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <sstream>

#include "base/file_text.h"
#include "base/limits.h"

namespace faultline {

std::string limitText(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

std::string firstWordOf(const std::string& path) {
  std::istringstream text(fileText(path));
  std::string word;
  text >> word;
  return word;
}

std::string limitBehind(int error) {
  switch (error) {
    case EMFILE:
      return fmt::format(" (ulimit -n is {})", limitText(RLIMIT_NOFILE));
    case ENFILE:
      return fmt::format(" (of the machine: fs.file-max is {})",
                         firstWordOf("/proc/sys/fs/file-max"));
    case EFBIG:
      return fmt::format(" (RLIMIT_FSIZE, ulimit -f, is {} bytes)", limitText(RLIMIT_FSIZE));
    default:
      return "";
  }
}

}  // namespace faultline
