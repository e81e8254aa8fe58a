#include "injector/safety/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>

#include "base/atomic_file.h"
#include "base/file_text.h"
#include "base/input_file.h"
#include "injector/safety/policy_file.h"

namespace faultline::safety {
namespace {

constexpr std::string_view kSuffix = ".json";
constexpr std::string_view kLock = "lock";
constexpr std::string_view kService = "service";  // who looks after the journal
/// A host with tens of thousands of routes has a large one.
constexpr std::size_t kMostEntryBytes = 8 << 20;
/// What a later write() of the same entry may add.
constexpr std::size_t kSpareEntryBytes = 64 << 10;
constexpr mode_t kFolderMode = 0755;
constexpr mode_t kFileMode = 0644;
/// Who may open it, if only to read, can hold it for ever.
constexpr mode_t kLockMode = 0600;
constexpr int kLockAgainMs = 5;

/// What a writer that was killed has left beside an entry: never read, it was not in effect.
bool isTemporary(const std::string& name) {
  const std::size_t end = name.find(kSuffix);
  if (end == std::string::npos) return false;
  return writerOfTemporary(name, name.substr(0, end + kSuffix.size())) != 0;
}

Status makeFolder(const std::filesystem::path& folder) {
  if (::access(folder.c_str(), F_OK) == 0) return okStatus();
  if (folder.has_parent_path() && folder != folder.parent_path()) {
    RETURN_IF_ERROR(makeFolder(folder.parent_path()));
  }
  if (::mkdir(folder.c_str(), kFolderMode) == 0 || errno == EEXIST) return okStatus();
  return Status::fromErrno(errno, fmt::format("make the journal's folder {}", folder.string()));
}

/// An entry says what root undoes, and which command it runs: it must be root's alone.
Result<std::string> readTrusted(const std::string& path) {
  const std::string attempt = "read " + path;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about = {};
  if (!fd || ::fstat(fd.get(), &about) != 0) return Status::fromErrno(errno, attempt);
  const uid_t self = ::geteuid();
  // To look at what is his own, a user needs nobody's trust.
  const uid_t owner = about.st_uid == self ? 0 : about.st_uid;
  const std::string why = whyUntrusted(owner, about.st_mode, /*holds=*/false);
  if (!why.empty()) return errorf(Code::kPermissionDenied, "{}: {}", attempt, why);
  if (about.st_nlink > 1) {
    return errorf(Code::kPermissionDenied, "{}: it has another name as well", attempt);
  }
  return readInput(fmt::format("/proc/self/fd/{}", fd.get()),
                   {.what = "journal entry", .attempt = attempt, .mostBytes = kMostEntryBytes});
}

/// What /proc tells of a process, from its state on; empty: there is none.
std::string behindName(pid_t pid) {
  const std::string stat = fileText(fmt::format("/proc/{}/stat", pid));
  // The name, in brackets, may have blanks and brackets in it.
  const std::size_t behind = stat.rfind(')');
  return behind == std::string::npos ? std::string() : stat.substr(behind + 1);
}

}  // namespace

Result<Journal> Journal::open(const std::string& folder) {
  std::error_code error;
  RETURN_IF_ERROR(makeFolder(std::filesystem::absolute(folder, error)));
  ASSIGN_OR_RETURN(std::string real, trustedPath(folder));
  return Journal(std::move(real));
}

Status Journal::put(const Entry& entry, std::size_t mostBytes) const {
  const std::string path = pathOf(entry.id);
  const std::string text = encode(entry);
  if (text.size() > mostBytes) {
    return errorf(Code::kUnsupported,
                  "the journal: an entry of {} bytes, of {} at most: {} has more addresses and "
                  "routes than could be put back; choose another interface",
                  text.size(), mostBytes, nameOf(entry.target));
  }
  RETURN_IF_ERROR(
      writeFileAtomically(path, text, Sync::kYes, Links::kRefused).withContext("the journal"));
  ::chmod(path.c_str(), kFileMode);
  return sync();
}

std::string Journal::pathOf(const std::string& id) const {
  return fmt::format("{}/{}{}", folder_, id, kSuffix);
}

std::string Journal::serviceFile() const { return fmt::format("{}/{}", folder_, kService); }

Status Journal::sync() const {
  const UniqueFd fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) {
    return Status::fromErrno(errno, fmt::format("sync the journal {}", folder_));
  }
  return okStatus();
}

Status Journal::create(const Entry& entry) {
  const std::string path = pathOf(entry.id);
  struct stat there = {};
  if (::lstat(path.c_str(), &there) == 0) {
    return errorf(Code::kAlreadyExists, "the journal has {} already; try again", path);
  }
  const Status written = put(entry, kMostEntryBytes - kSpareEntryBytes);
  if (!written.ok()) ::unlink(path.c_str());  // nothing was changed yet, so nothing is lost
  return written;
}

Status Journal::write(const Entry& entry) { return put(entry, kMostEntryBytes); }

Status Journal::remove(const std::string& id) {
  const std::string path = pathOf(id);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Status::fromErrno(errno, fmt::format("remove the journal entry {}", path));
  }
  return sync();
}

Result<Kept> Journal::read() const {
  namespace fs = std::filesystem;
  Kept kept;
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator it(folder_, error);
  if (error == std::errc::no_such_file_or_directory) return kept;
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) {
    return Status::fromErrno(error.value(), fmt::format("read the journal {}", folder_));
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (name == kLock || name == kService || isTemporary(name)) continue;
    const std::string path = fmt::format("{}/{}", folder_, name);
    const auto refuse = [&](std::string why) {
      kept.strange.push_back({path, std::move(why), name.ends_with(kSuffix)});
    };
    struct stat about = {};
    if (::lstat(path.c_str(), &about) != 0) continue;  // removed since
    if (!name.ends_with(kSuffix) || !S_ISREG(about.st_mode)) {
      refuse("it is no journal entry");
      continue;
    }
    const auto text = readTrusted(path);
    if (text.status().code() == Code::kNotFound) continue;
    if (!text.ok()) {
      refuse(text.status().message());
      continue;
    }
    auto entry = decode(*text);
    if (!entry.ok()) {
      refuse(entry.status().message());
    } else if (entry->id + std::string(kSuffix) != name) {
      refuse(fmt::format("it is the entry {} under another name", entry->id));
    } else {
      kept.entries.push_back(*std::move(entry));
    }
  }
  std::ranges::stable_sort(kept.entries, {}, &Entry::beganAt);
  return kept;
}

Result<UniqueFd> Journal::lock(Duration patience) const {
  const std::string path = fmt::format("{}/{}", folder_, kLock);
  const std::string attempt = fmt::format("lock the journal ({})", path);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kLockMode));
  if (!fd || ::fchmod(fd.get(), kLockMode) != 0) return Status::fromErrno(errno, attempt);
  const TimePoint deadline = now() + patience;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Status::fromErrno(errno, attempt);
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded, "{}: somebody else has held it for {} ms", attempt,
                    duration_cast<std::chrono::milliseconds>(patience).count());
    }
    ::poll(nullptr, 0, kLockAgainMs);
  }
  return fd;
}

std::string currentBoot() {
  std::string id = fileText("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

Holder holderOf(pid_t pid) {
  std::istringstream fields(behindName(pid));
  constexpr int kBetween = 18;  // the state and the start, the 3rd and the 22nd of all
  std::string field;
  std::string state;
  fields >> state;
  if (state == "Z" || state == "X") return {pid, 0};  // dead, and not yet waited for
  for (int i = 0; i < kBetween; ++i) fields >> field;
  std::uint64_t started = 0;
  fields >> started;
  return {pid, started};
}

bool isStopped(pid_t pid) {
  std::istringstream fields(behindName(pid));
  std::string state;
  fields >> state;
  return state == "T" || state == "t";
}

bool isHeld(const Entry& entry) {
  const Holder present = holderOf(entry.holder.pid);
  return entry.bootId == currentBoot() && present.started != 0 && present == entry.holder;
}

}  // namespace faultline::safety
