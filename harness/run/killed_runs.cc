#include "harness/run/killed_runs.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/atomic_file.h"
#include "base/unique_fd.h"
#include "reports/renderer.h"

namespace faultline::run {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLog = "log.txt";
constexpr std::string_view kResult = "result.json";

bool isOwnFile(const fs::path& path) {
  struct stat about = {};
  return ::lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
         about.st_uid == ::geteuid();
}

/// The folder of a run of this user that is over, locked. OutputFolder locks the folder as long as
/// its run lives.
UniqueFd lockOver(const fs::path& folder) {
  UniqueFd over(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const bool ours = over && isOwnFile(folder / kLog) && ::flock(over.get(), LOCK_EX | LOCK_NB) == 0;
  return ours ? std::move(over) : UniqueFd();
}

bool isOurs(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::error_code error;
  const fs::file_type type = entry.symlink_status(error).type();
  if (type == fs::file_type::directory) return name.starts_with("checkpoints-");
  if (type != fs::file_type::regular) return false;
  return name == kLog || std::ranges::any_of(reports::allRenderers(), [&](const auto& renderer) {
           return name == renderer->fileName();
         });
}

/// Whether nothing else is there. The temporary files of its writers are gone by then.
bool holdsOnlyOurs(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!isOurs(*it)) return false;
  }
  return !error;
}

bool sweep(const fs::path& folder) {
  std::error_code error;
  const UniqueFd over = lockOver(folder);
  // Looked at under the lock: a run that ended just now has a result.
  if (!over || fs::exists(fs::symlink_status(folder / kResult, error))) return false;
  for (const auto& renderer : reports::allRenderers()) {
    (void)sweepTemporaries((folder / renderer->fileName()).string());
  }
  return holdsOnlyOurs(folder) && fs::remove_all(folder, error) > 0 && !error;
}

}  // namespace

int sweepKilledRuns(const std::string& parent) {
  int swept = 0;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    if (sweep(it->path())) ++swept;
  }
  return swept;
}

}  // namespace faultline::run
