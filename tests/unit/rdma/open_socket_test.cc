// What anybody may do, and what is said when it cannot be done.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <functional>

#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "injector/rdma/nldev.h"

namespace faultline::rdma {
namespace {

constexpr uid_t kNobody = 65'534;
enum Outcome : int { kRight = 0, kWrong = 1, kCannot = 2 };

/// In a process of its own, since there is no way back.
int outcomeIn(const std::function<Outcome()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

bool becomeNobody() {
  return ::geteuid() != 0 || (::setresgid(kNobody, kNobody, kNobody) == 0 &&
                              ::setresuid(kNobody, kNobody, kNobody) == 0);
}

Outcome told(const Status& status) {
  std::fprintf(stderr, "%s\n", status.toString().c_str());
  return kWrong;
}

/// RDMA netlink opens, or the kernel does not have it.
Outcome asksForRdma() {
  if (!becomeNobody()) return kCannot;
  auto socket = openSocket();
  if (socket.ok()) {
    const Status listed = listDevices(*socket).status();
    return listed.ok() ? kRight : told(listed);
  }
  const bool absent = socket.status().code() == Code::kUnsupported &&
                      socket.status().message().find("ib_core") != std::string::npos &&
                      socket.status().message().find("has no protocol") != std::string::npos;
  return absent ? kRight : told(socket.status());
}

Outcome listsInterfaces() {
  if (!becomeNobody()) return kCannot;
  const auto here = netlink::currentNamespace();
  if (!here.ok()) return told(here.status());
  auto socket = netlink::Socket::open(here->get());
  if (!socket.ok()) return told(socket.status());
  const auto links = netlink::listNetDevices(*socket);
  return links.ok() && !links->empty() ? kRight : told(links.status());
}

TEST(OpenSocketTest, WithoutPrivilegesTheKernelIsAskedForRdma) {
  const int outcome = outcomeIn(asksForRdma);
  if (outcome == kCannot) GTEST_SKIP() << "there are no other users here";
  EXPECT_EQ(outcome, kRight);
}

TEST(OpenSocketTest, WithoutPrivilegesInterfacesAreListed) {
  const int outcome = outcomeIn(listsInterfaces);
  if (outcome == kCannot) GTEST_SKIP() << "there are no other users here";
  EXPECT_EQ(outcome, kRight);
}

/// With as many descriptors as are open, and `more`.
Status openSocketWithDescriptors(int more) {
  // The sanitizer of undefined behaviour needs a pipe to look at a type that it meets for the first
  // time.
  (void)Status::fromErrno(EMFILE, "have words of errors at hand");
  const int next = ::dup(STDERR_FILENO);
  ::close(next);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = static_cast<rlim_t>(next) + static_cast<rlim_t>(more);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return openSocket().status();
}

// The namespace, the socket's own descriptor of it, and where the thread is.
TEST(OpenSocketTest, AnotherFailureIsNotTakenForAKernelWithoutRdma) {
  constexpr int kDescriptors = 3;
  for (int more = 0; more < kDescriptors; ++more) {
    const int outcome = outcomeIn([&] {
      const Status status = openSocketWithDescriptors(more);
      const bool right = !status.ok() && status.code() != Code::kUnsupported &&
                         status.message().find("ib_core") == std::string::npos;
      return right ? kRight : told(status);
    });
    EXPECT_EQ(outcome, kRight) << more;
  }
}

}  // namespace
}  // namespace faultline::rdma
