#include "harness/control/progress_files.h"

#include <unistd.h>

#include "base/input_file.h"

namespace faultline::run {

std::optional<std::string_view> readStep(const std::string& path, std::int64_t offset,
                                         std::string& buffer) {
  // Opened each time: the program may put another file in its place.
  const Result<UniqueFd> fd = openInput(path);
  if (!fd.ok()) return std::nullopt;
  buffer.resize(command::ProgressLines::kStep);
  const ssize_t got = ::pread(fd->get(), buffer.data(), buffer.size(), offset);
  if (got < 0) return std::nullopt;
  buffer.resize(static_cast<std::size_t>(got));
  return buffer;
}

}  // namespace faultline::run
