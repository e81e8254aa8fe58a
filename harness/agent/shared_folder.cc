#include "harness/agent/shared_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/input_file.h"

namespace faultline::agent {
namespace {

std::string tokenFile(const std::string& folder) { return folder + "/token"; }

/// A new file.
Status writeNew(const std::string& path, const std::string& text) {
  constexpr mode_t kOwnerAlone = 0600;
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerAlone));
  if (!file) return Status::fromErrno(errno, "make the file " + path);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.get()) != 0) {
    return Status::fromErrno(errno, "write the file " + path);
  }
  return okStatus();
}

}  // namespace

Result<JobFolder> makeSharedFolder(const std::string& path, const std::string& token) {
  ASSIGN_OR_RETURN(JobFolder folder, JobFolder::make(path));
  constexpr int kNobody = -1;
  RETURN_IF_ERROR(folder.outliveUs(kNobody));
  RETURN_IF_ERROR(writeNew(tokenFile(path), token));
  return folder;
}

Status seeSharedFolder(const std::string& path, const std::string& token) {
  const Result<std::string> read = readFile(tokenFile(path));
  if (!read.ok()) return read.status();
  if (*read != token) return errorf(Code::kNotFound, "{} is another one here", path);
  // By its name nobody else's: all do this at once.
  std::string name = path + "/seen-XXXXXX";
  const UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) return Status::fromErrno(errno, "make a file in " + path);
  if (::unlink(name.c_str()) != 0) return Status::fromErrno(errno, "remove the file " + name);
  return okStatus();
}

}  // namespace faultline::agent
