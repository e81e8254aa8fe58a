#include "harness/run/output_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "reports/renderer.h"
#include "reports/result.h"

namespace faultline::run {

namespace {

namespace fs = std::filesystem;

/// An experiment that was killed is gone after so long, and its lock with it.
constexpr Duration kPatience = 2s;
constexpr int kPauseMilliseconds = 5;
constexpr const char* kLogFile = "log.txt";
constexpr const char* kResultFile = "result.json";
/// Where a new result is made while an earlier one is there.
constexpr const char* kUnfinished = "unfinished";
/// Begin the names of folders that runs make.
constexpr std::array<std::string_view, 2> kRunFolders{"command-", "checkpoints-"};

bool isRunFolder(std::string_view name) {
  return std::ranges::any_of(kRunFolders, [&](auto begin) { return name.starts_with(begin); });
}

bool isReport(std::string_view name) {
  return name == kLogFile ||
         std::ranges::any_of(reports::allRenderers(),
                             [&](const auto& renderer) { return name == renderer->fileName(); });
}

/// The beginning of a regular file in the folder; "" where there is none.
std::string beginningOf(int folder, const char* name) {
  const UniqueFd file(
      ::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

bool isOurResult(std::string_view text) {
  return text.find("\"schema\"") != std::string_view::npos &&
         text.find(reports::kResultSchema) != std::string_view::npos;
}

/// "     0.012 s  [1/4] ...", as every line of a log of ours begins; or no line yet.
bool isOurLog(std::string_view text) {
  constexpr std::size_t kTime = 10;
  return text.empty() ||
         (text.substr(0, kTime).find_first_not_of(" 0123456789.") == std::string_view::npos &&
          text.size() > kTime && text.substr(kTime).starts_with(" s  "));
}

/// Removes what writers of reports have left that were killed.
void sweepReports(const std::string& folder) {
  for (const auto& renderer : reports::allRenderers()) {
    (void)sweepTemporaries(fmt::format("{}/{}", folder, renderer->fileName()));
  }
}

std::string withoutSlash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string_view kindOf(mode_t mode) {
  return S_ISLNK(mode) ? "a symbolic link" : S_ISDIR(mode) ? "a folder" : "no regular file";
}

}  // namespace

Result<UniqueFd> OutputFolder::openFolder(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd) return fd;
  struct stat there = {};
  if (::lstat(path.c_str(), &there) == 0 && S_ISLNK(there.st_mode)) {
    return errorf(Code::kInvalidArgument,
                  "{} is a symbolic link, which is not followed: name the folder itself with --out",
                  path);
  }
  return Status::fromErrno(errno, "open the output directory " + path);
}

Result<OutputFolder::Content> OutputFolder::look(const std::string& path, int folder) {
  Content content;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool isFolder = isRunFolder(name) || name == kUnfinished;
    if (!isFolder && !isReport(name)) continue;
    struct stat there = {};
    if (::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (isFolder ? !S_ISDIR(there.st_mode) : !S_ISREG(there.st_mode)) {
      return errorf(Code::kAlreadyExists,
                    "{}/{} is {}, which faultline neither follows nor removes: choose another "
                    "directory with --out",
                    path, name, kindOf(there.st_mode));
    }
    content.ours.insert(name);
  }
  if (error) return errorf(Code::kIo, "look into {}: {}", path, error.message());
  const bool hasResult = content.ours.contains(kResultFile);
  content.result = hasResult && isOurResult(beginningOf(folder, kResultFile));
  content.known = content.result || (!hasResult && content.ours.contains(kLogFile) &&
                                     isOurLog(beginningOf(folder, kLogFile)));
  return content;
}

Status OutputFolder::judge(const std::string& path, const Content& content, Earlier earlier) {
  if (!content.ours.empty() && !content.known) {
    return errorf(Code::kAlreadyExists,
                  "{}/{} is not of a run of faultline, which would overwrite it: choose another "
                  "directory with --out",
                  path, *content.ours.begin());
  }
  if (content.result && earlier == Earlier::kRefused) {
    return errorf(Code::kAlreadyExists,
                  "{} has an earlier result: choose another directory with --out, or have it "
                  "replaced with --force",
                  path);
  }
  return okStatus();
}

Status OutputFolder::check(const std::string& given, Earlier earlier) {
  const std::string path = withoutSlash(given);
  struct stat there = {};
  if (::lstat(path.c_str(), &there) != 0 && errno == ENOENT) return okStatus();
  ASSIGN_OR_RETURN(const UniqueFd folder, openFolder(path));
  ASSIGN_OR_RETURN(const Content content, look(path, folder.get()));
  return judge(path, content, earlier);
}

Result<OutputFolder> OutputFolder::claim(const std::string& path, Earlier earlier) {
  OutputFolder folder(withoutSlash(path));
  ASSIGN_OR_RETURN(folder.lock_, openFolder(folder.final_));
  if (!folder.lock()) {
    return errorf(Code::kAlreadyExists,
                  "another run is writing into {}: wait for its end, or choose another directory "
                  "with --out",
                  path);
  }
  ASSIGN_OR_RETURN(const Content content, look(folder.final_, folder.lock_.get()));
  RETURN_IF_ERROR(judge(folder.final_, content, earlier));
  if (content.result) {
    RETURN_IF_ERROR(folder.beginBeside());
  } else {
    RETURN_IF_ERROR(folder.removeAll(content));
  }
  sweepReports(folder.final_);
  const std::string log = folder.logPath();
  const UniqueFd made(
      ::open(log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!made) return Status::fromErrno(errno, "make the log " + log);
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

/// Removes what an experiment has left in the folder.
Status OutputFolder::removeAll(const Content& content) const {
  for (const std::string& name : content.ours) {
    std::error_code error;
    fs::remove_all(fs::path(final_) / name, error);  // of a link the link
    if (error) {
      return errorf(Code::kIo, "remove {}/{} of an earlier run: {}; choose another with --out",
                    final_, name, error.message());
    }
  }
  return okStatus();
}

Status OutputFolder::beginBeside() {
  path_ = fmt::format("{}/{}", final_, kUnfinished);
  if (::mkdirat(lock_.get(), kUnfinished, 0777) == 0) return okStatus();
  if (errno != EEXIST) return Status::fromErrno(errno, "make the folder " + path_);
  sweepReports(path_);
  // Of an experiment that was interrupted, if it is anything that we know.
  ASSIGN_OR_RETURN(const UniqueFd unfinished, openFolder(path_));
  ASSIGN_OR_RETURN(const Content content, look(path_, unfinished.get()));
  std::error_code error;
  for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (content.known && content.ours.contains(name)) continue;
    return errorf(Code::kAlreadyExists,
                  "{}/{} is not of a run of faultline: choose another directory with --out", path_,
                  name);
  }
  fs::remove_all(path_, error);
  if (!error && ::mkdirat(lock_.get(), kUnfinished, 0777) == 0) return okStatus();
  return errorf(Code::kIo, "make the folder {} anew: {}", path_, error.message());
}

Status OutputFolder::replaceEarlier() {
  if (!replaces()) return okStatus();
  const auto failed = [&](const std::string& name, int error) {
    return Status::fromErrno(error, fmt::format("put {}/{} into {}; the new result stays in {}",
                                                path_, name, final_, path_));
  };
  ASSIGN_OR_RETURN(const UniqueFd made, openFolder(path_));
  ASSIGN_OR_RETURN(const Content fresh, look(path_, made.get()));
  ASSIGN_OR_RETURN(const Content old, look(final_, lock_.get()));
  // Folders of the earlier result make room first, and its files that have no successor.
  // result.json is replaced in one step, last: until then the folder has the earlier result.
  for (const std::string& name : old.ours) {
    if (name == kUnfinished || (isReport(name) && fresh.ours.contains(name))) continue;
    std::error_code error;
    fs::remove_all(fs::path(final_) / name, error);
    if (error) return failed(name, error.value());
  }
  const auto move = [&](const std::string& name) {
    return ::renameat(made.get(), name.c_str(), lock_.get(), name.c_str()) == 0;
  };
  for (const std::string& name : fresh.ours) {
    if (name != kResultFile && !move(name)) return failed(name, errno);
  }
  if (!move(kResultFile)) return failed(kResultFile, errno);
  (void)::unlinkat(lock_.get(), kUnfinished, AT_REMOVEDIR);
  path_ = final_;
  return okStatus();
}

}  // namespace faultline::run
