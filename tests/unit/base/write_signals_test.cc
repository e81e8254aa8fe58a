#include "base/write_signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>

#include "base/atomic_file.h"
#include "base/unique_fd.h"
#include "tests/support/run_program.h"

namespace faultline {
namespace {

/// In a child with the dispositions of a program that cares for no signal: its exit code, or 128
/// and the signal that has ended it.
int inChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_DFL);
    std::signal(SIGPIPE, SIG_DFL);
    ::_exit(body());
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool isDefault(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_DFL;
}

TEST(WriteSignalsTest, AFileThatGetsTooLargeIsAnErrorAndNoSignal) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "counters.json").string();
  EXPECT_EQ(inChild([&] {
              const rlimit small{4096, 4096};
              ::setrlimit(RLIMIT_FSIZE, &small);
              const Status status = writeFileAtomically(path, std::string(100'000, 'x'));
              if (status.message().find("File too large") == std::string::npos) return 1;
              return isDefault(SIGXFSZ) ? 0 : 2;
            }),
            0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(WriteSignalsTest, APipeWithoutAReaderIsAnErrorAndNoSignal) {
  EXPECT_EQ(inChild([] {
              std::array<int, 2> ends{};
              if (::pipe(ends.data()) != 0) return 1;
              ::close(ends[0]);
              const Status status =
                  writeFileAtomically("/dev/fd/" + std::to_string(ends[1]), "words");
              if (status.message().find("Broken pipe") == std::string::npos) return 2;
              return isDefault(SIGPIPE) ? 0 : 3;
            }),
            0);
}

TEST(WriteSignalsTest, ASignalThatWaitedBeforeStillComes) {
  EXPECT_EQ(inChild([] {
              sigset_t both;
              ::sigemptyset(&both);
              ::sigaddset(&both, SIGPIPE);
              ::sigprocmask(SIG_BLOCK, &both, nullptr);
              ::raise(SIGPIPE);
              { const WithoutWriteSignals quiet; }
              ::sigprocmask(SIG_UNBLOCK, &both, nullptr);
              return 0;
            }),
            128 + SIGPIPE);
}

}  // namespace
}  // namespace faultline
