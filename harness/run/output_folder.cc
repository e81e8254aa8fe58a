#include "harness/run/output_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>

#include "reports/renderer.h"

namespace faultline::run {

Result<OutputFolder> OutputFolder::claim(const std::string& path) {
  OutputFolder folder(path);
  const std::string log = folder.logPath();
  folder.lock_.reset(::open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!folder.lock_) return Status::fromErrno(errno, "open the log " + log);
  // Other errors: a file system without locks. The folder is then used without.
  if (::flock(folder.lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return errorf(Code::kAlreadyExists,
                  "another run is writing into {}: wait for its end, or choose another directory "
                  "with --out",
                  path);
  }
  RETURN_IF_ERROR(folder.clear());
  return folder;
}

Status OutputFolder::clear() const {
  std::error_code error;
  for (const auto& renderer : reports::allRenderers()) {
    const std::string file = fmt::format("{}/{}", path_, renderer->fileName());
    std::filesystem::remove(file, error);
    if (error) {
      return errorf(Code::kIo, "remove {} of an earlier run: {}; choose another with --out", file,
                    error.message());
    }
  }
  if (::ftruncate(lock_.get(), 0) != 0) {
    return Status::fromErrno(errno, "empty the log " + logPath());
  }
  return okStatus();
}

}  // namespace faultline::run
