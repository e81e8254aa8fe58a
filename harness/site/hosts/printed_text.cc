#include "harness/site/hosts/printed_text.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/executable.h"
#include "base/printable.h"
#include "harness/launch/process.h"

namespace faultline::hosts {
namespace {

constexpr off_t kMostPrinted = 1 << 20;
constexpr std::size_t kMostOfErrors = 500;

}  // namespace

Result<UniqueFd> makePrintedText() {
  UniqueFd fd(::memfd_create("faultline-printed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), kMostPrinted) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0) {
    return Status::fromErrno(errno, "make room for what a program prints");
  }
  return fd;
}

std::string printedText(int fd, std::size_t most) {
  const off_t end = ::lseek(fd, 0, SEEK_CUR);  // up to which it has been written
  const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(most));
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, end - begin)), '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), begin);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

Result<std::string> inPath(const std::string& name) {
  const char* const path = std::getenv("PATH");
  return findExecutable(name, "", path == nullptr ? "/usr/bin:/bin" : path);
}

Result<std::string> outputOf(const std::vector<std::string>& command, Duration budget) {
  ASSIGN_OR_RETURN(const std::string program, inPath(command.front()));
  ASSIGN_OR_RETURN(const UniqueFd output, makePrintedText());
  ASSIGN_OR_RETURN(const UniqueFd errors, makePrintedText());
  launch::SpawnOptions options;
  options.arguments = command;
  options.executable = program;
  options.foreign = true;
  options.stdout_fd = output.get();
  options.stderr_fd = errors.get();
  ASSIGN_OR_RETURN(launch::Process process, launch::Process::spawn(options));
  const auto ended = process.waitFor(budget);
  if (!ended.ok()) return ended.status().withContext(command.front());
  if (ended->ok()) return printedText(output.get(), kMostPrinted);
  std::string said = printedText(errors.get(), kMostOfErrors);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return errorf(Code::kUnavailable, "{}: {}{}", command.front(), ended->toString(),
                said.empty() ? "" : ", '" + printable(said) + "'");
}

}  // namespace faultline::hosts
