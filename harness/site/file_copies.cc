#include "harness/site/file_copies.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>

namespace faultline::site {

FileCopies::FileCopies(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) files_.push_back({path});
}

Status FileCopies::append(int number, std::string_view bytes) {
  if (number < 0 || number >= std::ssize(files_)) {
    return errorf(Code::kInvalidArgument, "there is no file {} of these programs", number);
  }
  File& file = files_[static_cast<std::size_t>(number)];
  if (!file.fd) {
    constexpr mode_t kMode = 0644;
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(file.path).parent_path(), error);
    file.fd.reset(
        ::open(file.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kMode));
    if (!file.fd) return Status::fromErrno(errno, "make " + file.path);
  }
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file.fd.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Status::fromErrno(errno, "write what a program wrote to " + file.path);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return okStatus();
}

}  // namespace faultline::site
