#include "harness/control/output_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <vector>

#include "harness/baseline/strategy_table.h"
#include "harness/record/run_order.h"
#include "harness/scenario/workload_kind.h"
#include "reports/renderer.h"

namespace faultline::run {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLogFile = "log.txt";
constexpr const char* kResultFile = "result.json";
/// Where a new result is made while an earlier one is there.
constexpr const char* kUnfinished = "unfinished";
/// Begin the names of folders that runs make.
constexpr std::string_view kCommands = "command-", kCheckpoints = "checkpoints-";

bool isReport(std::string_view name) {
  return name == kLogFile ||
         std::ranges::any_of(reports::allRenderers(),
                             [&](const auto& renderer) { return name == renderer->fileName(); });
}

bool isFolder(std::string_view name) {
  return name == kUnfinished || name == kGoodputFolder || name.starts_with(kCommands) ||
         name.starts_with(kCheckpoints);
}

std::set<std::string> namesOfExperiment(const std::set<std::string>& folders) {
  std::set<std::string> names = folders;
  names.insert({kLogFile, kUnfinished});
  for (const auto& renderer : reports::allRenderers()) names.insert(renderer->fileName());
  return names;
}

bool isOurResult(std::string_view text) {
  return text.find("\"schema\"") != std::string_view::npos &&
         text.find(reports::kResultSchema) != std::string_view::npos;
}

std::optional<mode_t> modeOf(int folder, const std::string& name) {
  struct stat there = {};
  if (::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return there.st_mode;
}

}  // namespace

std::string checkpointsFolder(int block) { return fmt::format("{}{}", kCheckpoints, block); }

std::string commandFolder(const std::string& strategy, int block) {
  return fmt::format("{}{}-{}", kCommands, strategy, block);
}

std::set<std::string> runFoldersOf(const scenario::Scenario& scenario) {
  std::set<std::string> names;
  if (scenario.workload.kind->hasCells) names.insert(kGoodputFolder);
  for (const PlannedRun& run : orderRuns(scenario, scenario.seed)) {
    const baseline::StrategySpec* const spec = baseline::findStrategy(run.strategy->kind());
    if (!scenario.workload.kind->runsRanks) {
      names.insert(commandFolder(run.strategy->name, run.block));
    } else if (spec != nullptr && spec->restarts) {
      names.insert(checkpointsFolder(run.block));
    }
  }
  return names;
}

bool isOfExperiment(const std::string& name, mode_t mode) {
  return isFolder(name) ? S_ISDIR(mode) : isReport(name) && S_ISREG(mode);
}

Result<OutputFolder::Content> OutputFolder::look(const std::string& path, int folder,
                                                 const std::set<std::string>& needed) {
  ASSIGN_OR_RETURN(MadeEntries record, MadeEntries::read(folder, path));
  Content content{.record = std::move(record), .older = {}};
  // Before there were records a result was known by its first lines.
  const bool older = !content.record.there() && isOurResult(beginningOf(folder, kResultFile));
  for (const std::string& name : namesOfExperiment(needed)) {
    const auto mode = modeOf(folder, name);
    if (!mode) continue;
    if (!isOfExperiment(name, *mode)) {
      return errorf(Code::kAlreadyExists,
                    "{}/{} is {}, which faultline neither follows nor removes: choose another "
                    "directory with --out",
                    path, name, kindOf(*mode));
    }
    if (older && isReport(name)) content.older.insert(name);
    if (!content.record.mayReplace(name) && !content.older.contains(name)) {
      return errorf(Code::kAlreadyExists,
                    "{}/{} is not of a run of faultline, which would overwrite it: choose another "
                    "directory with --out",
                    path, name);
    }
    content.result = content.result || name == kResultFile;
  }
  return content;
}

Status OutputFolder::judge(const std::string& path, const Content& content, Earlier earlier) {
  if (content.result && earlier == Earlier::kRefused) {
    return errorf(Code::kAlreadyExists,
                  "{} has an earlier result: choose another directory with --out, or have it "
                  "replaced with --force",
                  path);
  }
  return okStatus();
}

Status OutputFolder::check(const std::string& given, Earlier earlier,
                           const std::set<std::string>& needed) {
  const std::string path = withoutSlash(given);
  struct stat there = {};
  if (::lstat(path.c_str(), &there) != 0 && errno == ENOENT) return okStatus();
  ASSIGN_OR_RETURN(const UniqueFd folder, openFolder(path));
  ASSIGN_OR_RETURN(const Content content, look(path, folder.get(), needed));
  return judge(path, content, earlier);
}

Result<OutputFolder> OutputFolder::claim(const std::string& given, Earlier earlier,
                                         const std::set<std::string>& needed) {
  const std::string path = withoutSlash(given);
  ASSIGN_OR_RETURN(UniqueFd lock, openFolder(path));
  if (!lockFolder(lock.get())) {
    return errorf(Code::kAlreadyExists,
                  "another run is writing into {}: wait for its end, or choose another directory "
                  "with --out",
                  path);
  }
  ASSIGN_OR_RETURN(Content content, look(path, lock.get(), needed));
  RETURN_IF_ERROR(judge(path, content, earlier));
  OutputFolder folder(path, std::move(lock), std::move(content.record));
  RETURN_IF_ERROR(folder.record_.begin(content.older));
  folder.record_.sweepTemporaries();
  if (content.result) {
    RETURN_IF_ERROR(folder.beginBeside());
  } else {
    RETURN_IF_ERROR(removeMade(path, folder.lock_.get(), folder.record_, {}));
  }
  RETURN_IF_ERROR(folder.recordOfPath().add(kLogFile));
  const std::string log = folder.logPath();
  const UniqueFd made(
      ::open(log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!made) return Status::fromErrno(errno, "make the log " + log);
  return folder;
}

/// Removes what an experiment made in the folder, `but` for some.
Status OutputFolder::removeMade(const std::string& path, int folder, MadeEntries& record,
                                const std::set<std::string>& but) {
  const std::set<std::string> names = record.made();
  for (const std::string& name : names) {
    const auto mode = modeOf(folder, name);
    // Something else that took its place by now is somebody's.
    if (but.contains(name) || (mode && !isOfExperiment(name, *mode))) continue;
    std::error_code error;
    if (mode) fs::remove_all(fs::path(path) / name, error);
    if (error) {
      return errorf(Code::kIo, "remove {}/{} of an earlier run: {}; choose another with --out",
                    path, name, error.message());
    }
    RETURN_IF_ERROR(record.drop(name));
  }
  return okStatus();
}

Status OutputFolder::beginBeside() {
  path_ = fmt::format("{}/{}", final_, kUnfinished);
  RETURN_IF_ERROR(record_.add(kUnfinished));
  if (::mkdirat(lock_.get(), kUnfinished, 0777) != 0 && errno != EEXIST) {
    return Status::fromErrno(errno, "make the folder " + path_);
  }
  ASSIGN_OR_RETURN(const UniqueFd folder, openFolder(path_));
  ASSIGN_OR_RETURN(beside_, MadeEntries::read(folder.get(), path_));
  RETURN_IF_ERROR(beside_->begin());
  // Of an experiment that was interrupted.
  beside_->sweepTemporaries();
  RETURN_IF_ERROR(removeMade(path_, folder.get(), *beside_, {}));
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == MadeEntries::kFile) continue;
    return errorf(Code::kAlreadyExists,
                  "{}/{} is not of a run of faultline: choose another directory with --out", path_,
                  name);
  }
  return error ? errorf(Code::kIo, "look into {}: {}", path_, error.message()) : okStatus();
}

std::string OutputFolder::absolutePath() const { return std::filesystem::absolute(path_).string(); }

Status OutputFolder::makeFolder(const std::string& name) {
  RETURN_IF_ERROR(removeFolder(name));
  const std::string path = fmt::format("{}/{}", path_, name);
  struct stat there = {};
  if (::lstat(path.c_str(), &there) == 0) {
    return errorf(Code::kAlreadyExists,
                  "{} is not of a run of faultline: choose another directory with --out", path);
  }
  RETURN_IF_ERROR(recordOfPath().add(name));
  const bool made = ::mkdir(path.c_str(), 0777) == 0;
  return made ? okStatus() : Status::fromErrno(errno, "create the folder " + path);
}

Status OutputFolder::removeFolder(const std::string& name) {
  if (!recordOfPath().isMade(name)) return okStatus();
  const std::string path = fmt::format("{}/{}", path_, name);
  std::error_code error;
  fs::remove_all(path, error);  // of a link the link
  if (error) return Status::fromErrno(error.value(), "remove the folder " + path);
  return recordOfPath().drop(name);
}

Status OutputFolder::render(const reports::ScenarioResult& result) {
  // Something of others that has come here while the experiment ran.
  for (const std::string& name : reports::filesOf(result)) {
    struct stat there = {};
    const std::string file = fmt::format("{}/{}", path_, name);
    if (!recordOfPath().mayReplace(name) && ::lstat(file.c_str(), &there) == 0) {
      return errorf(Code::kAlreadyExists,
                    "{} is not of a run of faultline: it was put there "
                    "while this one was made",
                    file);
    }
    RETURN_IF_ERROR(recordOfPath().add(name));
  }
  RETURN_IF_ERROR(reports::renderAll(result, path_));
  return recordOfPath().finish();
}

Status OutputFolder::replaceEarlier() {
  if (!replaces()) return okStatus();
  const auto failed = [&](const std::string& name, int error) {
    return Status::fromErrno(error, fmt::format("put {}/{} into {}; the new result stays in {}",
                                                path_, name, final_, path_));
  };
  ASSIGN_OR_RETURN(const UniqueFd made, openFolder(path_));
  const std::set<std::string> fresh = beside_->made();
  // Folders of the earlier result make room first, and its files that have no successor.
  // result.json is replaced in one step, last: until then the folder has the earlier result.
  std::set<std::string> stay{kUnfinished};
  for (const std::string& name : fresh) {
    if (isReport(name)) stay.insert(name);
  }
  RETURN_IF_ERROR(removeMade(final_, lock_.get(), record_, stay));
  const auto move = [&](const std::string& name) -> Status {
    if (!record_.mayReplace(name) && modeOf(lock_.get(), name)) return failed(name, EEXIST);
    RETURN_IF_ERROR(record_.add(name));
    const bool moved = ::renameat(made.get(), name.c_str(), lock_.get(), name.c_str()) == 0;
    return moved ? okStatus() : failed(name, errno);
  };
  for (const std::string& name : fresh) {
    if (name != kResultFile) RETURN_IF_ERROR(move(name));
  }
  RETURN_IF_ERROR(move(kResultFile));
  beside_->erase();
  beside_.reset();
  path_ = final_;
  if (::unlinkat(lock_.get(), kUnfinished, AT_REMOVEDIR) == 0) {
    RETURN_IF_ERROR(record_.drop(kUnfinished));
  }
  return record_.finish();
}

}  // namespace faultline::run
