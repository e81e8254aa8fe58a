#include "base/file_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "base/unique_fd.h"

namespace faultline {

namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // some files of /proc never end

}  // namespace

std::string fileText(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  std::string text;
  std::array<char, 16384> buffer;
  while (file && text.size() <= kMostBytes) {
    const ssize_t size = ::read(file.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace faultline
