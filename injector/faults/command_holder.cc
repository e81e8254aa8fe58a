#include "injector/faults/command_holder.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <type_traits>
#include <utility>

namespace faultline::injector {
namespace {

// What is kept of each of its outputs: a sentence, and room for an error message.
constexpr std::size_t kKept = 2048;
constexpr int kLookAgainMilliseconds = 2;
constexpr int kAskAgainMilliseconds = 10;
// What a full pipe holds: 64 KiB. A command that never stops writing must not hold up its limit.
constexpr int kReadsAtOnce = 32;
// What does not die by SIGKILL waits in the kernel (state D), and may do so for ever.
constexpr std::int64_t kDeathMilliseconds = 1000;
constexpr int kNotStarted = 127;  // as shells say it
constexpr int kSignalBase = 128;
// The holder has its own standard input, output and error.
constexpr int kAboveStandard = STDERR_FILENO + 1;

/// The answer of the holder, as it goes over the channel.
struct Answer {
  bool ran = false;
  bool timed_out = false;
  int code = 0;
  std::uint32_t output_size = 0;
  std::uint32_t errors_size = 0;
  char output[kKept];
  char errors[kKept];
};
static_assert(std::is_trivially_copyable_v<Answer>);

/// Everything that the holder needs, made before it is forked: afterwards, the locks of this
/// process may be held by threads that the holder does not have.
struct Prepared {
  std::array<std::vector<char*>, kSteps> words;
  std::vector<char*> environment;
  int namespace_fd = -1;
  std::int64_t limit_ms = 0;
};

// --- in the holder: system calls only ---

std::int64_t milliseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
}

[[noreturn]] void become(const std::vector<char*>& words, const Prepared& prepared, int output,
                         int errors) {
  ::setpgid(0, 0);
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGHUP, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  const bool inside =
      prepared.namespace_fd < 0 || ::setns(prepared.namespace_fd, CLONE_NEWNET) == 0;
  if (inside) ::execvpe(words.front(), words.data(), prepared.environment.data());
  const char* const reason = ::strerrordesc_np(errno);
  (void)!::write(STDERR_FILENO, reason, std::strlen(reason));
  ::_exit(kNotStarted);
}

/// Reads what there is, and keeps the beginning. Never waits.
void drain(int fd, char* kept, std::uint32_t& size) {
  char buffer[kKept];
  for (int reads = 0; reads < kReadsAtOnce; ++reads) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got <= 0) return;
    const std::size_t room = std::min(kKept - size, static_cast<std::size_t>(got));
    std::memcpy(kept + size, buffer, room);
    size += static_cast<std::uint32_t>(room);
  }
}

/// A pipe whose end for reading does not wait. That for writing does: programs count on it.
bool openPipe(int (&ends)[2]) {
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return true;
}

/// Waits a little; whether the bench wants something else, or has ended (`channel`; -1: whatever
/// it wants has to wait).
bool isCalledAway(int channel) {
  pollfd watched{channel, POLLIN, 0};
  return ::poll(&watched, 1, kLookAgainMilliseconds) > 0;
}

/// Kills it with its process group, and waits for its end, but not for ever.
int killed(pid_t child) {
  ::kill(-child, SIGKILL);
  ::kill(child, SIGKILL);  // before it has its group
  int status = 0;
  const std::int64_t deadline = milliseconds() + kDeathMilliseconds;
  while (::waitpid(child, &status, WNOHANG) != child) {
    if (milliseconds() >= deadline) return SIGKILL;  // the status of who dies by it
    ::poll(nullptr, 0, kLookAgainMilliseconds);
  }
  return status;
}

/// A command that may be `interruptible_by` the channel ends when the bench wants something else.
void execute(const std::vector<char*>& words, const Prepared& prepared, int interruptible_by,
             Answer& answer) {
  answer = {};
  if (words.size() < 2) {  // only the null pointer: nothing is to be done
    answer.ran = true;
    return;
  }
  int output[2];
  int errors[2];
  if (!openPipe(output)) return;
  if (!openPipe(errors)) {
    ::close(output[0]);
    ::close(output[1]);
    return;
  }
  const pid_t child = ::fork();
  if (child == 0) become(words, prepared, output[1], errors[1]);
  ::close(output[1]);
  ::close(errors[1]);
  answer.ran = child > 0;
  const std::int64_t deadline = milliseconds() + prepared.limit_ms;
  int status = 0;
  bool over = child <= 0;
  while (!over) {
    drain(output[0], answer.output, answer.output_size);
    drain(errors[0], answer.errors, answer.errors_size);
    over = ::waitpid(child, &status, WNOHANG) == child;
    if (over) break;
    answer.timed_out = milliseconds() >= deadline;
    over = answer.timed_out || isCalledAway(interruptible_by);
    if (over) status = killed(child);
  }
  drain(output[0], answer.output, answer.output_size);
  drain(errors[0], answer.errors, answer.errors_size);
  ::close(output[0]);
  ::close(errors[0]);
  answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
}

const std::vector<char*>& wordsOf(const Prepared& prepared, Step step) {
  return prepared.words[static_cast<std::size_t>(step)];
}

[[noreturn]] void hold(int channel, const Prepared& prepared) {
  ::setsid();
  // Whoever reads what the bench writes waits for the end of the bench, and not of this process.
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Other ends of other holders' channels, too: each must see the end of the bench.
  const auto low = static_cast<unsigned>(std::min(channel, prepared.namespace_fd));
  const auto high = static_cast<unsigned>(std::max(channel, prepared.namespace_fd));
  if (prepared.namespace_fd < 0) {
    ::syscall(SYS_close_range, 3U, high - 1, 0U);
  } else {
    ::syscall(SYS_close_range, 3U, low - 1, 0U);
    if (high > low + 1) ::syscall(SYS_close_range, low + 1, high - 1, 0U);
  }
  ::syscall(SYS_close_range, high + 1, ~0U, 0U);
  bool broken = false;
  static Answer answer;
  for (Step step{}; ::read(channel, &step, sizeof step) == sizeof step;) {
    if (step == Step::kApply) broken = true;
    // What is half done can be taken back, but not what is half taken back.
    execute(wordsOf(prepared, step), prepared, step == Step::kRevert ? -1 : channel, answer);
    const bool done = answer.ran && !answer.timed_out && answer.code == 0;
    if (step == Step::kRevert && done) broken = false;
    (void)::send(channel, &answer, sizeof answer, MSG_NOSIGNAL);
  }
  if (broken) execute(wordsOf(prepared, Step::kRevert), prepared, -1, answer);
  ::_exit(EXIT_SUCCESS);
}

// --- in the bench ---

std::vector<char*> pointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Result<std::unique_ptr<CommandHolder>> CommandHolder::start(const HeldCommands& commands) {
  HeldCommands texts = commands;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view name = std::string_view(*entry).substr(0, std::strcspn(*entry, "=") + 1);
    const bool given = std::ranges::any_of(
        commands.environment, [&](const std::string& own) { return own.starts_with(name); });
    if (!given) texts.environment.emplace_back(*entry);
  }
  Prepared prepared;
  for (std::size_t i = 0; i < kSteps; ++i) prepared.words[i] = pointersTo(texts.words[i]);
  prepared.environment = pointersTo(texts.environment);
  prepared.limit_ms = std::chrono::ceil<std::chrono::milliseconds>(texts.limit).count();
  constexpr const char* kAttempt = "start the process that holds a user's commands";
  UniqueFd inside;
  if (commands.namespace_fd >= 0) {
    inside = UniqueFd(::fcntl(commands.namespace_fd, F_DUPFD_CLOEXEC, kAboveStandard));
    if (!inside) return Status::fromErrno(errno, kAttempt);
    prepared.namespace_fd = inside.get();
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Status::fromErrno(errno, kAttempt);
  }
  UniqueFd own(ends[0]);
  const UniqueFd low(ends[1]);
  const UniqueFd theirs(::fcntl(low.get(), F_DUPFD_CLOEXEC, kAboveStandard));
  if (!theirs) return Status::fromErrno(errno, kAttempt);
  const pid_t process = ::fork();
  if (process < 0) return Status::fromErrno(errno, kAttempt);
  if (process == 0) hold(theirs.get(), prepared);
  return std::unique_ptr<CommandHolder>(new CommandHolder(process, std::move(own)));
}

CommandHolder::~CommandHolder() {
  channel_.reset();
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status CommandHolder::begin(Step step) {
  if (::send(channel_.get(), &step, sizeof step, MSG_NOSIGNAL) != sizeof step) {
    return errorf(Code::kUnavailable, "the process that holds a user's commands has ended");
  }
  if (running_) RETURN_IF_ERROR(receive(true).status());  // it comes first
  running_ = true;
  return okStatus();
}

Result<std::optional<CommandEnd>> CommandHolder::receive(bool wait) {
  Answer answer;
  ssize_t got = 0;
  do {
    got = ::recv(channel_.get(), &answer, sizeof answer, wait ? 0 : MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return std::optional<CommandEnd>();
  running_ = false;
  if (got != sizeof answer) {
    return errorf(Code::kUnavailable, "the process that holds a user's commands has ended");
  }
  return std::optional(CommandEnd{.ran = answer.ran,
                                  .timed_out = answer.timed_out,
                                  .code = answer.code,
                                  .output = std::string(answer.output, answer.output_size),
                                  .errors = std::string(answer.errors, answer.errors_size)});
}

Result<std::optional<CommandEnd>> CommandHolder::ended() { return receive(false); }

Result<CommandEnd> CommandHolder::run(Step step, const std::function<bool()>& stop) {
  RETURN_IF_ERROR(begin(step));
  while (stop) {
    if (stop()) return errorf(Code::kAborted, "nobody waits for it any more");
    pollfd answer{channel_.get(), POLLIN, 0};
    if (::poll(&answer, 1, kAskAgainMilliseconds) != 0) break;
  }
  ASSIGN_OR_RETURN(std::optional<CommandEnd> end, receive(true));
  return std::move(*end);
}

}  // namespace faultline::injector
