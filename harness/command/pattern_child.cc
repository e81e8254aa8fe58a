#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <regex>

#include "base/clock.h"
#include "base/limits.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "harness/command/pattern.h"

namespace faultline::command {
namespace {

/// First byte of an answer: what follows are numbers, or why there are none.
constexpr char kNumbers = 'n';
constexpr char kProblem = 'p';

Result<std::vector<double>> match(std::string_view text, const std::string& pattern) {
  try {
    const std::regex compiled(pattern);
    std::vector<double> numbers;
    RETURN_IF_ERROR(forEachLine(text, [&](std::string_view line) -> Status {
      using Iterator = std::regex_iterator<std::string_view::const_iterator>;
      for (Iterator found(line.begin(), line.end(), compiled), none; found != none; ++found) {
        ASSIGN_OR_RETURN(const double number, numberOfGroup((*found)[1].str(), pattern));
        numbers.push_back(number);
      }
      return okStatus();
    }));
    return numbers;
  } catch (const std::regex_error& error) {
    return Status(Code::kInvalidArgument, error.what());
  }
}

bool sendAll(int fd, const void* data, std::size_t size) {
  const auto* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::write(fd, next, size);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) {
      next += sent;
      size -= static_cast<std::size_t>(sent);
    }
  }
  return true;
}

/// The whole life of the process that matches.
[[noreturn]] void answer(int fd, std::string_view text, const std::string& pattern) {
  const rlimit noCore{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &noCore);  // too deep a recursion ends in SIGSEGV
  (void)::signal(SIGSEGV, SIG_DFL);
  const auto numbers = match(text, pattern);
  if (numbers.ok()) {
    (void)(sendAll(fd, &kNumbers, 1) &&
           sendAll(fd, numbers->data(), numbers->size() * sizeof(double)));
  } else {
    const std::string why = numbers.status().message();
    (void)(sendAll(fd, &kProblem, 1) && sendAll(fd, why.data(), why.size()));
  }
  ::_exit(0);
}

/// What it says until it ends, or `deadline`.
Result<std::string> hear(int fd, TimePoint deadline) {
  std::string heard;
  std::array<char, 65536> buffer;
  while (true) {
    const Duration left = deadline - now();
    if (left <= Duration::zero()) return Status(Code::kDeadlineExceeded, "its time is over");
    pollfd ready{fd, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(toMilliseconds(left)) + 1) <= 0) continue;
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got == 0) return heard;
    if (got > 0) heard.append(buffer.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return Status::fromErrno(errno, "hear what matches");
  }
}

class ChildEngine final : public PatternEngine {
 public:
  explicit ChildEngine(int timeLimitMs) : timeLimitMs_(timeLimitMs) {}

  const char* name() const override { return "the standard library, in a process of its own"; }

  Status check(const std::string& pattern) const override {
    RETURN_IF_ERROR(readPattern(pattern).status());
    return numbersIn("", pattern).status();
  }

  Result<std::vector<double>> numbersIn(std::string_view text,
                                        const std::string& pattern) const override {
    RETURN_IF_ERROR(readPattern(pattern).status());
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return callRefused(errno, "pipe2", "make a pipe");
    UniqueFd reading(ends[0]), writing(ends[1]);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) return Status::fromErrno(errno, "start a process that matches");
    if (child == 0) {
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      answer(writing.get(), text, pattern);
    }
    writing.reset();
    const auto heard = hear(reading.get(), now() + std::chrono::milliseconds(timeLimitMs_));
    (void)::kill(child, SIGKILL);
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (heard.status().code() == Code::kDeadlineExceeded) {
      return errorf(Code::kDeadlineExceeded,
                    "'{}': matching took more than {} ms and was ended; write it without nested "
                    "repetitions such as (a+)+",
                    pattern, timeLimitMs_);
    }
    if (!heard.ok()) return heard.status();
    if (heard->starts_with(kProblem)) return Status(Code::kInvalidArgument, heard->substr(1));
    if (heard->empty() || (heard->size() - 1) % sizeof(double) != 0) {
      return errorf(Code::kInvalidArgument, "'{}': matching it needs too much memory", pattern);
    }
    std::vector<double> numbers(heard->size() / sizeof(double));
    std::memcpy(numbers.data(), heard->data() + 1, heard->size() - 1);
    return numbers;
  }

 private:
  int timeLimitMs_;
};

}  // namespace

std::unique_ptr<PatternEngine> makeChildEngine(int timeLimitMs) {
  return std::make_unique<ChildEngine>(timeLimitMs);
}

}  // namespace faultline::command
