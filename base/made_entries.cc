#include "base/made_entries.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/write_signals.h"

namespace faultline {
namespace {

constexpr std::string_view kFormat = "faultline.made/1";
constexpr std::string_view kHead =
    "faultline.made/1: what faultline has made in this folder; it replaces and removes nothing "
    "else\n";
constexpr std::string_view kMade = "+ ", kRemoved = "- ", kOlder = "~ ", kWriter = "by ",
                           kFinished = "finished";
/// Far above that of a run with thousands of folders.
constexpr std::size_t kMostRecordBytes = 16 << 20;

/// Whether it can be the name of an entry, and a line.
bool isName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name != MadeEntries::kFile &&
         name.find_first_of(std::string_view("/\n\0", 3)) == std::string_view::npos;
}

Result<std::string> wholeText(int file, const std::string& what) {
  std::string text, part(64 << 10, '\0');
  for (;;) {
    const ssize_t got = ::read(file, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::fromErrno(errno, "read " + what);
    if (got == 0) return text;
    text.append(part, 0, static_cast<std::size_t>(got));
    if (text.size() > kMostRecordBytes) {
      return errorf(Code::kAlreadyExists, "{} is no record of faultline: it is too long", what);
    }
  }
}

}  // namespace

Result<MadeEntries> MadeEntries::read(int folder, const std::string& path) {
  MadeEntries entries;
  entries.path_ = fmt::format("{}/{}", path, kFile);
  // Anew: a duplicate would share the lock, and keep it.
  entries.folder_.reset(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat about = {}, of_folder = {};
  if (!entries.folder_ || ::fstat(folder, &of_folder) != 0) {
    return Status::fromErrno(errno, "look into " + path);
  }
  if (::fstatat(folder, kFile, &about, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return entries;
    return Status::fromErrno(errno, "look at " + entries.path_);
  }
  if (!S_ISREG(about.st_mode)) {
    return errorf(Code::kAlreadyExists,
                  "{} is no regular file, and so no record of faultline: choose another directory",
                  entries.path_);
  }
  const UniqueFd file(::openat(folder, kFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file || ::fstat(file.get(), &about) != 0) {
    return Status::fromErrno(errno, "open " + entries.path_);
  }
  // Somebody else could name in it what is ours.
  if (about.st_uid != ::geteuid() && about.st_uid != of_folder.st_uid) {
    return errorf(Code::kAlreadyExists, "{} is another user's: choose another directory",
                  entries.path_);
  }
  ASSIGN_OR_RETURN(const std::string text, wholeText(file.get(), entries.path_));
  RETURN_IF_ERROR(entries.parse(text));
  return entries;
}

Status MadeEntries::parse(std::string_view text) {
  if (!text.starts_with(kFormat) || !text.substr(kFormat.size()).starts_with(":")) {
    return errorf(Code::kAlreadyExists,
                  "{} is not a record that this faultline can read: choose another directory",
                  path_);
  }
  there_ = true;
  // What is behind the last line end was not written to its end, so nothing was made of it.
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;
       text.remove_prefix(end + 1)) {
    const std::string_view line = text.substr(0, end);
    const std::string name(line.substr(std::min<std::size_t>(2, line.size())));
    if (line == kFinished) finished_ = true;
    if (line.starts_with(kWriter)) {
      pid_t writer = 0;
      const std::string_view number = line.substr(kWriter.size());
      (void)std::from_chars(number.data(), number.data() + number.size(), writer);
      if (writer > 0) writers_.insert(writer);
      finished_ = false;
      continue;
    }
    if (!isName(name)) continue;
    if (line.starts_with(kMade)) made_.insert(name);
    if (line.starts_with(kMade) || line.starts_with(kRemoved)) older_.erase(name);
    if (line.starts_with(kRemoved)) made_.erase(name);
    if (line.starts_with(kOlder)) older_.insert(name);
  }
  return okStatus();
}

Status MadeEntries::begin(const std::set<std::string>& older) {
  std::string text = fmt::format("{}{}\n", kWriter, ::getpid());
  for (const std::string& name : older) text += fmt::format("{}{}\n", kOlder, name);
  // Through the descriptor: the folder may have been renamed.
  const std::string place = fmt::format("/proc/self/fd/{}/{}", folder_.get(), kFile);
  if (!there_) {
    const Status made =
        writeFileAtomically(place, std::string(kHead) + text, Sync::kNo, Links::kRefused);
    if (!made.ok()) return Status(made.code(), fmt::format("begin {}: {}", path_, made.message()));
  }
  file_.reset(::openat(folder_.get(), kFile, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  struct stat about = {};
  if (!file_ || ::fstat(file_.get(), &about) != 0) return Status::fromErrno(errno, "open " + path_);
  if (there_) {
    // A line that was not written to its end.
    ASSIGN_OR_RETURN(const std::string whole, wholeText(file_.get(), path_));
    const auto size = static_cast<off_t>(whole.rfind('\n') + 1);
    if (size != about.st_size && ::ftruncate(file_.get(), size) != 0) {
      return Status::fromErrno(errno, "write " + path_);
    }
    RETURN_IF_ERROR(append(text));
  }
  there_ = true;
  finished_ = false;
  writers_.insert(::getpid());
  older_.insert(older.begin(), older.end());
  return okStatus();
}

Status MadeEntries::append(std::string_view line) {
  const WithoutWriteSignals quiet;
  struct stat before = {};
  if (::fstat(file_.get(), &before) != 0) return Status::fromErrno(errno, "write " + path_);
  const ssize_t wrote = ::write(file_.get(), line.data(), line.size());
  if (wrote == static_cast<ssize_t>(line.size())) return okStatus();
  const int error = wrote < 0 ? errno : ENOSPC;
  (void)!::ftruncate(file_.get(), before.st_size);
  return Status::fromErrno(error, "write " + path_);
}

Status MadeEntries::add(const std::string& name) {
  if (!isName(name)) return errorf(Code::kInvalidArgument, "'{}' is no name of an entry", name);
  if (isMade(name)) return okStatus();
  RETURN_IF_ERROR(append(fmt::format("{}{}\n", kMade, name)));
  made_.insert(name);
  older_.erase(name);
  return okStatus();
}

Status MadeEntries::drop(const std::string& name) {
  if (!isMade(name)) return okStatus();
  RETURN_IF_ERROR(append(fmt::format("{}{}\n", kRemoved, name)));
  made_.erase(name);
  return okStatus();
}

Status MadeEntries::finish() {
  if (!finished_) RETURN_IF_ERROR(append(fmt::format("{}\n", kFinished)));
  finished_ = true;
  return okStatus();
}

bool MadeEntries::isTemporary(const std::string& name) const {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return false;
  const std::string of = name.substr(0, dot);
  return (isMade(of) || of == kFile) && writers_.contains(writerOfTemporary(name, of));
}

void MadeEntries::sweepTemporaries() const {
  const std::string place = fmt::format("/proc/self/fd/{}", folder_.get());
  for (const std::string& name : made_) {
    (void)faultline::sweepTemporaries(fmt::format("{}/{}", place, name), writers_);
  }
  (void)faultline::sweepTemporaries(fmt::format("{}/{}", place, kFile), writers_);
}

void MadeEntries::erase() {
  (void)::unlinkat(folder_.get(), kFile, 0);
  file_.reset();
  there_ = false;
}

}  // namespace faultline
