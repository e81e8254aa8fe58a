#include "harness/run/output_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "reports/renderer.h"

namespace faultline::run {

namespace {

/// An experiment that was killed is gone after so long, and its lock with it.
constexpr Duration kPatience = 2s;
constexpr int kPauseMilliseconds = 5;

}  // namespace

Result<OutputFolder> OutputFolder::claim(const std::string& path) {
  OutputFolder folder(path);
  const std::string log = folder.logPath();
  folder.lock_.reset(::open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!folder.lock_) return Status::fromErrno(errno, "open the log " + log);
  if (!folder.lock()) {
    return errorf(Code::kAlreadyExists,
                  "another run is writing into {}: wait for its end, or choose another directory "
                  "with --out",
                  path);
  }
  RETURN_IF_ERROR(folder.clear());
  return folder;
}

bool OutputFolder::lock() const {
  const TimePoint deadline = now() + kPatience;
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    // Other errors: a file system without locks. The folder is then used without.
    if (errno != EWOULDBLOCK) return true;
    if (now() >= deadline) return false;
    ::poll(nullptr, 0, kPauseMilliseconds);
  }
  return true;
}

Status OutputFolder::clear() const {
  std::error_code error;
  for (const auto& renderer : reports::allRenderers()) {
    const std::string file = fmt::format("{}/{}", path_, renderer->fileName());
    (void)sweepTemporaries(file);
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
