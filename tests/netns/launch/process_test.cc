#include "harness/launch/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "injector/netlink/namespace.h"
#include "tests/support/netns_fixture.h"

namespace faultline::launch {
namespace {

constexpr Duration kLong = 10s;

class ProcessTest : public test::NetnsTest {
 protected:
  /// A shell; what it prints can be read with output().
  SpawnOptions shell(const std::string& script) {
    output_.reset(::memfd_create("output", MFD_CLOEXEC));
    SpawnOptions options;
    options.arguments = {"sh", "-c", script};
    options.executable = "/bin/sh";
    options.stdout_fd = output_.get();
    return options;
  }
  std::string output() const {
    std::array<char, 4096> buffer{};
    const ssize_t size = ::pread(output_.get(), buffer.data(), buffer.size(), 0);
    return std::string(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  }

  UniqueFd output_;
};

TEST_F(ProcessTest, RunsInTheNamespaceWithTheEnvironmentAndTellsItsExitCode) {
  ASSERT_OK_AND_ASSIGN(const UniqueFd node, netlink::newNamespace());
  ASSERT_OK_AND_ASSIGN(const auto id, netlink::namespaceId(node.get()));
  SpawnOptions options = shell("readlink /proc/self/ns/net; echo $FAULTLINE_TEST; exit 3");
  options.namespace_fd = node.get();
  options.environment = {{"FAULTLINE_TEST", "a value"}};
  ASSERT_OK_AND_ASSIGN(Process process, Process::spawn(options));
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, process.waitFor(kLong));
  EXPECT_EQ(status.code, 3);
  EXPECT_EQ(output(), fmt::format("net:[{}]\na value\n", id));
}

TEST_F(ProcessTest, InheritsNothingButItsOwnDescriptors) {
  // Left open without close-on-exec, as a careless library would: it would keep the namespace
  // alive.
  ASSERT_OK_AND_ASSIGN(const UniqueFd node, netlink::newNamespace());
  const UniqueFd careless(::dup(node.get()));
  ASSERT_OK_AND_ASSIGN(Process process, Process::spawn(shell("ls -l /proc/$$/fd")));
  ASSERT_OK(process.waitFor(kLong).status());
  EXPECT_EQ(output().find("net:["), std::string::npos) << output();
  EXPECT_NE(output().find(" 3 -> pipe:"), std::string::npos) << output();
  EXPECT_NE(output().find(" 4 -> socket:"), std::string::npos) << output();
}

TEST_F(ProcessTest, TheFirstMessageWaitsInItsChannel) {
  // Four bytes of length, then the JSON text.
  SpawnOptions options = shell("head -c 14 <&4 | tail -c 10");
  options.first_message = nlohmann::json::object({{"rank", 3}});
  ASSERT_OK_AND_ASSIGN(Process process, Process::spawn(options));
  ASSERT_OK(process.waitFor(kLong).status());
  EXPECT_EQ(output(), R"({"rank":3})");
}

TEST_F(ProcessTest, WhatFailsBeforeExecIsToldWithItsReason) {
  SpawnOptions options = shell("true");
  options.executable = "/does/not/exist";
  EXPECT_EQ(Process::spawn(options).status().code(), Code::kNotFound);
  options = shell("true");
  options.namespace_fd = output_.get();  // not a namespace
  const Status status = Process::spawn(options).status();
  EXPECT_NE(status.message().find("namespace"), std::string::npos) << status.message();
}

TEST_F(ProcessTest, IgnoresInterruptsOfTheTerminal) {
  ASSERT_OK_AND_ASSIGN(Process process, Process::spawn(shell("kill -INT $$; exit 5")));
  ASSERT_OK_AND_ASSIGN(const ExitStatus status, process.waitFor(kLong));
  EXPECT_EQ(status.code, 5);
}

TEST_F(ProcessTest, ASignalIsToldAndTheDescriptorIsReadable) {
  ASSERT_OK_AND_ASSIGN(Process process, Process::spawn(shell("exec sleep 100")));
  EXPECT_EQ(process.waitFor(10ms).status().code(), Code::kDeadlineExceeded);
  ASSERT_OK(process.signal(SIGTERM));
  pollfd ready{process.pidFd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, static_cast<int>(toMilliseconds(kLong))), 1);
  ASSERT_OK_AND_ASSIGN(const auto status, process.tryWait());
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->signal, SIGTERM);
  EXPECT_EQ(status->toString(), "killed by signal 15 (Terminated)");
  EXPECT_OK(process.signal(SIGKILL));  // nothing to kill any more
}

TEST_F(ProcessTest, TheDestructorKillsAndReaps) {
  pid_t pid = 0;
  {
    ASSERT_OK_AND_ASSIGN(Process process, Process::spawn(shell("exec sleep 100")));
    pid = process.pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

}  // namespace
}  // namespace faultline::launch
