#include "harness/agent/job_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

namespace faultline::agent {
namespace {

namespace fs = std::filesystem;

constexpr int kUserFd = launch::kFirstInheritedFd + 1;
// For what still writes there, on other machines perhaps, to end.
constexpr Duration kRemoveBudget = 5s;
constexpr Duration kRemovePause = 20ms;
// The kernel tears a process down; one that it cannot end does not keep a folder for ever.
constexpr Duration kUserBudget = 30s;
constexpr Duration kRemoverBudget = kRemoveBudget + 5s;

UniqueFd openDirectory(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

Status removeTree(const std::string& path, Duration budget) {
  const TimePoint deadline = now() + budget;
  for (;;) {
    std::error_code error;
    fs::remove_all(path, error);
    if (!error) return okStatus();
    if (now() >= deadline) {
      return errorf(Code::kIo, "the folder {} could not be removed: {}", path, error.message());
    }
    ::poll(nullptr, 0, static_cast<int>(toMilliseconds(kRemovePause)));
  }
}

void awaitEnd(int fd, int milliseconds) {
  pollfd ended{fd, POLLIN, 0};
  while (::poll(&ended, 1, milliseconds) < 0 && errno == EINTR) {
  }
}

/// The process that removes a folder: it has the folder, and who uses it, as descriptors.
int removerMain() {
  constexpr int kExitError = 1;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_IGN);
  std::error_code error;
  const std::string path =
      fs::read_symlink(fmt::format("/proc/self/fd/{}", launch::kFirstInheritedFd), error).string();
  if (error) return kExitError;
  constexpr int kForEver = -1;
  awaitEnd(launch::kLifelineFd, kForEver);
  awaitEnd(kUserFd, static_cast<int>(toMilliseconds(kUserBudget)));
  return removeTree(path, kRemoveBudget).ok() ? 0 : kExitError;
}

}  // namespace

Result<JobFolder> JobFolder::make(const std::string& path) {
  // By another name until it is locked: whoever sweeps would take it for one that nobody holds.
  std::string unlocked = (fs::path(path).parent_path() / "faultline-new-XXXXXX").string();
  if (::mkdtemp(unlocked.data()) == nullptr) {
    return Status::fromErrno(errno, "make the folder " + unlocked);
  }
  UniqueFd folder = openDirectory(unlocked);
  // A file system without locks does without: nothing is swept there.
  if (folder) (void)::flock(folder.get(), LOCK_EX | LOCK_NB);
  if (folder && ::rename(unlocked.c_str(), path.c_str()) == 0) {
    return JobFolder(path, std::move(folder));
  }
  const int error = errno;
  (void)::rmdir(unlocked.c_str());
  return Status::fromErrno(error, "make the folder " + path);
}

JobFolder::~JobFolder() {
  if (folder_) (void)remove();
}

Status JobFolder::outliveUs(int user) {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return Status::fromErrno(errno, "open /dev/null");
  launch::SpawnOptions options;
  options.body = removerMain;
  options.survives = true;
  // Who reads what we print must not wait for it.
  options.stdout_fd = options.stderr_fd = null.get();
  options.inherited_fds = {folder_.get(), user >= 0 ? user : null.get()};
  auto remover = launch::Process::spawn(options);
  if (!remover.ok()) return remover.status().withContext("watch over the folder " + path_);
  remover_.emplace(std::move(*remover));
  return okStatus();
}

Status JobFolder::remove() {
  const std::string path = std::exchange(path_, {});
  folder_.reset();
  if (path.empty()) return okStatus();
  if (remover_) {
    remover_->endLifeline();
    (void)remover_->waitFor(kRemoverBudget);
    remover_.reset();
  }
  struct stat there = {};
  if (::lstat(path.c_str(), &there) != 0 && errno == ENOENT) return okStatus();
  return removeTree(path, Duration::zero());
}

std::vector<std::string> JobFolder::sweep(const std::string& path) {
  std::vector<std::string> words;
  std::error_code error;
  const fs::path parent = fs::path(path).parent_path();
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string found = entry->path().string();
    if (!entry->path().filename().string().starts_with(kRunFolderPrefix)) continue;
    const UniqueFd folder = openDirectory(found);
    struct stat known = {};
    if (!folder || ::fstat(folder.get(), &known) != 0 || known.st_uid != ::geteuid()) continue;
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    const Status removed = removeTree(found, Duration::zero());
    words.push_back(removed.ok() ? fmt::format("removed {}, which an earlier run had left", found)
                                 : removed.message());
  }
  return words;
}

}  // namespace faultline::agent
