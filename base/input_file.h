#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"

/// Files that a user or a program names: they may be anything. Nothing here waits for a writer or
/// reads without end.
namespace faultline {

/// Most bytes that are read of a file that has no smaller bound of its own.
inline constexpr std::size_t kMostInputBytes = std::size_t{256} << 20;

/// What a file is read as.
struct Input {
  std::string_view what = "file";  ///< for messages: "request trace"
  std::string_view attempt = "";   ///< how messages begin; empty: "read PATH"
  std::size_t mostBytes = kMostInputBytes;
  /// Whether a pipe that this process has open is read as well: "-" and "/dev/stdin" (standard
  /// input), "/dev/fd/63" (the shell's `<(...)`). Reading then waits for the pipe's end.
  bool ownPipes = false;
};

/// The whole of a file. kNotFound where there is none; kInvalidArgument for a folder, a device, a
/// pipe or a socket, and for a file above the bound; kIo and the like where reading fails. The
/// message says what the file is and what would do.
Result<std::string> readInput(const std::string& path, const Input& input);

/// As readInput with no bound but kMostInputBytes.
Result<std::string> readFile(const std::string& path);

/// A regular file, open for reading in parts; errors as readInput.
Result<UniqueFd> openInput(const std::string& path);

/// The descriptor of this process that a path means ("/dev/stdout", "/proc/self/fd/3"), or -1.
int descriptorOf(std::string_view path);

}  // namespace faultline
