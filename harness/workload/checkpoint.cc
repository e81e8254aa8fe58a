#include "harness/workload/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/input_file.h"
#include "base/limits.h"
#include "base/unique_fd.h"
#include "harness/workload/digest.h"

namespace faultline::workload {
namespace {

constexpr std::array<char, 8> kMagic{'F', 'L', 'T', 'C', 'K', 'P', 'T', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr mode_t kFileMode = 0644;

/// The file's beginning; the state follows. Host byte order: a checkpoint is read where it was
/// written.
struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t rank = 0;
  std::uint64_t iteration = 0;
  std::uint64_t stateBytes = 0;
  Digest::Value checksum{};  ///< of the header with a zero checksum, and the state
};
static_assert(sizeof(Header) == 64, "no padding: the header is written as it lies in memory");

Digest::Value checksumOf(Header header, std::span<const std::byte> state) {
  header.checksum = {};
  Digest digest;
  digest.add(&header, sizeof header);
  digest.add(state.data(), state.size());
  return digest.value();
}

Status writeAll(int fd, const void* data, std::size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd, next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Status::fromErrno(errno, "write");
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return okStatus();
}

/// Reads up to `bytes`; fewer only at the end of the file.
Result<std::size_t> readUpTo(int fd, void* data, std::size_t bytes) {
  auto* next = static_cast<char*>(data);
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(fd, next + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::fromErrno(errno, "read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::string directoryOf(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

Status writeTemporary(const std::string& path, const Header& header,
                      std::span<const std::byte> state) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kFileMode));
  if (!file) return Status::fromErrno(errno, "open " + path);
  RETURN_IF_ERROR(writeAll(file.get(), &header, sizeof header));
  RETURN_IF_ERROR(writeAll(file.get(), state.data(), state.size()));
  if (::fsync(file.get()) != 0) return callRefused(errno, "fsync", "save it to the disk");
  return okStatus();
}

Status syncDirectory(const std::string& directory) {
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Status::fromErrno(errno, "open " + directory);
  if (::fsync(fd.get()) != 0) return callRefused(errno, "fsync", "save to the disk " + directory);
  return okStatus();
}

/// ": N bytes needed, M left" for a message, when the file system can tell.
std::string spaceNote(const std::string& directory, std::uint64_t needed) {
  struct statvfs info = {};
  if (::statvfs(directory.c_str(), &info) != 0) return "";
  const std::uint64_t left = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  return fmt::format(" ({} bytes needed, {} left on the file system of {})", needed, left,
                     directory);
}

}  // namespace

Status saveCheckpoint(const std::string& path, std::uint64_t iteration, std::uint32_t rank,
                      std::span<const std::byte> state) {
  Header header;
  header.rank = rank;
  header.iteration = iteration;
  header.stateBytes = state.size();
  header.checksum = checksumOf(header, state);

  const std::string temporary = path + ".tmp";
  const std::string directory = directoryOf(path);
  Status status = writeTemporary(temporary, header, state);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = Status::fromErrno(errno, "rename " + temporary);
  }
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    const std::string note = spaceNote(directory, sizeof header + state.size());
    return Status(status.code(),
                  fmt::format("cannot save checkpoint {}: {}{}", path, status.message(), note));
  }
  return syncDirectory(directory);
}

Result<Checkpoint> loadCheckpoint(const std::string& path, std::uint32_t rank) {
  const auto bad = [&](std::string_view what) {
    return errorf(Code::kInvalidArgument,
                  "checkpoint {} cannot be used: {}; delete it to start from the beginning", path,
                  what);
  };
  const Result<UniqueFd> opened = openInput(path);
  if (opened.status().code() == Code::kNotFound) {
    return errorf(Code::kNotFound, "there is no checkpoint {}", path);
  }
  if (opened.status().code() == Code::kInvalidArgument) return bad("it is not a regular file");
  if (!opened.ok()) return opened.status().withContext("checkpoint");
  const UniqueFd& file = *opened;
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return Status::fromErrno(errno, "stat checkpoint " + path);

  Header header;
  ASSIGN_OR_RETURN(const std::size_t headerBytes, readUpTo(file.get(), &header, sizeof header));
  if (headerBytes >= kMagic.size() && header.magic != kMagic)
    return bad("it is no checkpoint file");
  if (headerBytes < sizeof header) {
    return bad(fmt::format("it is cut short in its header, after {} bytes", headerBytes));
  }
  if (header.version != kVersion) {
    return bad(fmt::format("it has version {}, this program reads {}", header.version, kVersion));
  }
  // Compared before anything is allocated: a damaged size must not ask for all the memory.
  const auto stateInFile = static_cast<std::uint64_t>(info.st_size) - sizeof header;
  if (header.stateBytes != stateInFile) {
    return bad(fmt::format("its state should have {} bytes, the file has {}: it is {}",
                           header.stateBytes, stateInFile,
                           stateInFile < header.stateBytes ? "cut short" : "too long"));
  }
  Checkpoint checkpoint;
  checkpoint.iteration = header.iteration;
  checkpoint.rank = header.rank;
  checkpoint.state.resize(header.stateBytes);
  ASSIGN_OR_RETURN(const std::size_t stateBytes,
                   readUpTo(file.get(), checkpoint.state.data(), checkpoint.state.size()));
  if (stateBytes != header.stateBytes) return bad("it became shorter while it was read");
  if (checksumOf(header, checkpoint.state) != header.checksum) {
    return bad("its checksum does not match its content");
  }
  if (header.rank != rank) {
    return bad(fmt::format("it belongs to rank {}, not to rank {}", header.rank, rank));
  }
  return checkpoint;
}

}  // namespace faultline::workload
