#include "harness/control/killed_runs.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/made_entries.h"
#include "harness/control/output_folder.h"

namespace faultline::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* kResult = "result.json";

/// Whether everything in the folder is what the record names, or a part of it.
bool holdsOnlyMade(const fs::path& folder, const MadeEntries& record) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    struct stat about = {};
    if (::lstat(it->path().c_str(), &about) != 0 || about.st_uid != ::geteuid()) return false;
    const bool made = record.isMade(name) && isOfExperiment(name, about.st_mode);
    const bool own = name == MadeEntries::kFile || record.isTemporary(name);
    if (!made && !(own && S_ISREG(about.st_mode))) return false;
  }
  return !error;
}

bool sweep(const fs::path& path) {
  auto folder = openFolder(path);
  // OutputFolder locks the folder as long as its run lives.
  if (!folder.ok() || ::flock(folder->get(), LOCK_EX | LOCK_NB) != 0) return false;
  auto record = MadeEntries::read(folder->get(), path);
  if (!record.ok() || !record->there() || record->finished()) return false;
  std::error_code error;
  if (fs::exists(fs::symlink_status(path / kResult, error))) return false;
  if (!holdsOnlyMade(path, *record)) return false;
  for (const std::string& name : record->made()) {
    fs::remove_all(path / name, error);
    if (error) return false;
  }
  record->sweepTemporaries();
  // The record goes last, so that the next sweep knows what this one leaves when it is killed.
  record->erase();
  return ::rmdir(path.c_str()) == 0;
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
