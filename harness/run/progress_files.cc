#include "harness/run/progress_files.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace faultline::run {

ProgressFiles::ProgressFiles(std::vector<std::string> paths) {
  for (std::string& path : paths) files_.push_back({std::move(path), {}});
}

Status ProgressFiles::look(const std::function<void(int, int)>& began) {
  for (std::size_t rank = 0; rank < files_.size(); ++rank) {
    File& file = files_[rank];
    if (file.path.empty()) continue;
    // Opened each time: the program may put another file in its place. Never waiting, also if it
    // is a pipe.
    const UniqueFd fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) continue;
    buffer_.resize(command::ProgressLines::kStep);
    const ssize_t got = ::pread(fd.get(), buffer_.data(), buffer_.size(), file.lines.offset());
    if (got < 0) continue;
    buffer_.resize(static_cast<std::size_t>(got));
    auto iterations = file.lines.read(buffer_);
    if (!iterations.ok()) return iterations.status().withContext(file.path);
    for (const int iteration : *iterations) began(static_cast<int>(rank), iteration);
  }
  return okStatus();
}

}  // namespace faultline::run
