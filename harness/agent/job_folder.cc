#include "harness/agent/job_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/file_text.h"

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

// In a folder of a run: the machine that has made it.
constexpr const char* kMadeOn = ".made-on";

/// Of this machine: its number since it has started, and its name.
std::string thisMachine() {
  utsname names{};
  (void)::uname(&names);
  std::string boot = fileText("/proc/sys/kernel/random/boot_id");
  while (boot.ends_with('\n')) boot.pop_back();
  return fmt::format("{} {}\n", boot, names.nodename);
}

/// Whether locks of who made it are seen here: where machines share a folder, each may know its own
/// locks only. One that nobody has marked is being removed.
bool isOfThisMachine(const std::string& folder) {
  const std::string made = fileText((fs::path(folder) / kMadeOn).string());
  const std::string here = thisMachine();
  const auto part = [](const std::string& text, bool first) {
    const std::size_t space = text.find(' ');
    return space == std::string::npos ? "" : first ? text.substr(0, space) : text.substr(space);
  };
  // Its name is asked for where it has started anew since then.
  return made.empty() || part(made, true) == part(here, true) ||
         part(made, false) == part(here, false);
}

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
  constexpr int kForEver = -1;
  awaitEnd(launch::kLifelineFd, kForEver);
  std::error_code error;
  const std::string path =
      fs::read_symlink(fmt::format("/proc/self/fd/{}", launch::kFirstInheritedFd), error).string();
  if (error) return kExitError;
  awaitEnd(kUserFd, static_cast<int>(toMilliseconds(kUserBudget)));
  const Status removed = removeTree(path, kRemoveBudget);
  if (removed.ok()) return 0;
  (void)launch::MessageChannel(UniqueFd(launch::kMessagesFd)).send(removed.message());
  return kExitError;
}

/// The process that removes what others have left: says what became of each, in words.
int sweeperMain() {
  launch::MessageChannel agent{UniqueFd(launch::kMessagesFd)};
  const auto path = agent.receiveWithin(kRemoveBudget);
  if (!path.ok() || !path->is_string()) return 1;
  for (const std::string& what : JobFolder::sweep(path->get<std::string>())) (void)agent.send(what);
  return 0;
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
  const fs::path mark = fs::path(unlocked) / kMadeOn;
  bool marked = true;
  if (fs::path(path).filename().string().starts_with(kRunFolderPrefix)) {
    std::ofstream text(mark);
    text << thisMachine() << std::flush;
    marked = text.good();
  }
  if (folder && marked && ::rename(unlocked.c_str(), path.c_str()) == 0) {
    return JobFolder(path, std::move(folder));
  }
  const int error = errno;
  (void)::unlink(mark.c_str());
  (void)::rmdir(unlocked.c_str());
  return Status::fromErrno(error, "make the folder " + path);
}

JobFolder::~JobFolder() {
  if (folder_) (void)remove();
  // This process may end before the folder is removed.
  if (remover_) remover_->letGo();
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

void JobFolder::beginRemove() {
  folder_.reset();  // who removes it holds its lock
  if (!remover_) return;
  // The next one of its name may come before it is removed.
  const std::string aside = fmt::format("{}-over-{}", path_, remover_->pid());
  if (::rename(path_.c_str(), aside.c_str()) == 0) path_ = aside;
  remover_->endLifeline();
}

std::optional<Status> JobFolder::removed() {
  if (!remover_) return remove();
  const auto ended = remover_->tryWait();
  if (ended.ok() && !*ended) return std::nullopt;
  const std::string path = std::exchange(path_, {});
  if (ended.ok() && (*ended)->ok()) return okStatus();
  const auto why = remover_->messages().receive();
  if (why.ok() && *why && (*why)->is_string()) {
    return errorf(Code::kIo, "{}", (*why)->get<std::string>());
  }
  return errorf(Code::kIo, "the folder {} could not be removed: who was to do that has ended",
                path);
}

Result<launch::Process> JobFolder::startSweeper(const std::string& path) {
  launch::SpawnOptions options;
  options.body = sweeperMain;
  options.first_message = path;
  auto sweeper = launch::Process::spawn(options);
  if (!sweeper.ok()) return sweeper.status().withContext("look for folders that runs have left");
  return sweeper;
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
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 || !isOfThisMachine(found)) continue;
    const Status removed = removeTree(found, Duration::zero());
    words.push_back(removed.ok() ? fmt::format("removed {}, which an earlier run had left", found)
                                 : removed.message());
  }
  return words;
}

}  // namespace faultline::agent
