#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

/// What programs print that this process starts, in memory that cannot grow without end.
namespace faultline::hosts {

/// Where a program may print to; what is beyond 1 MiB it cannot write, and may go on.
Result<UniqueFd> makePrintedText();
/// What has been printed there: of more than `most` bytes the last ones.
std::string printedText(int fd, std::size_t most);

/// Where PATH has the program of this name; kNotFound where it has none.
Result<std::string> inPath(const std::string& name);

/// Runs a program that ends by itself, found in PATH, and returns what it prints on standard
/// output. kUnavailable, with what it says on standard error, when it fails; kDeadlineExceeded, and
/// it is killed, when it takes longer than `budget`.
Result<std::string> outputOf(const std::vector<std::string>& command, Duration budget);

}  // namespace faultline::hosts
