#include "harness/run/progress_files.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace faultline::run {

std::optional<std::string_view> readStep(const std::string& path, std::int64_t offset,
                                         std::string& buffer) {
  // Opened each time: the program may put another file in its place. Never waiting, also if it
  // is a pipe.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return std::nullopt;
  buffer.resize(command::ProgressLines::kStep);
  const ssize_t got = ::pread(fd.get(), buffer.data(), buffer.size(), offset);
  if (got < 0) return std::nullopt;
  buffer.resize(static_cast<std::size_t>(got));
  return buffer;
}

}  // namespace faultline::run
