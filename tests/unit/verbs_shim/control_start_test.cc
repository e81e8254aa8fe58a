// How the control thread starts, in children that have a folder for themselves, and goes on when
// the process lacks what it needs.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include "base/unique_fd.h"
#include "injector/verbs/address.h"
#include "injector/verbs/message.h"
#include "tests/unit/verbs_shim/child.h"
#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {
namespace {

using ::testing::HasSubstr;

sockaddr_un addressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  return address;
}

bool connects(int fd, const std::string& path) {
  const sockaddr_un address = addressOf(path);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

UniqueFd newSocket(int flags = 0) {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
}

std::string ownPath(const std::string& folder) {
  return injector::verbs::socketPath(folder, ::getpid(), injector::verbs::pidNamespaceOf("self"));
}

class ControlStartTest : public ShimTest {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    std::string name = "/tmp/faultline-shim-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ::setenv(injector::verbs::kFolderVariable, folder_.c_str(), 1);  // children begin there
  }
  void TearDown() override {
    ::unsetenv(injector::verbs::kFolderVariable);
    std::filesystem::remove_all(folder_);
    ShimTest::TearDown();
  }

  std::string folder_;
};

TEST_F(ControlStartTest, AnotherProcessThatDoesNotAnswerIsNotWaitedFor) {
  const std::string stopped = folder_ + "/1-1.sock";
  const UniqueFd listener = newSocket();
  const sockaddr_un address = addressOf(stopped);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<UniqueFd> queue;
  do {
    queue.push_back(newSocket(SOCK_NONBLOCK));
  } while (connects(queue.back().get(), stopped));
  ASSERT_EQ(errno, EAGAIN);
  EXPECT_EQ(inChild([] {
              const Device device(0);
              return 0;
            }),
            0);
  EXPECT_TRUE(std::filesystem::exists(stopped)) << "it is not stale";
}

TEST_F(ControlStartTest, TheSocketOfAKilledProcessGoes) {
  const std::string stale = folder_ + "/1-1.sock";
  {
    const UniqueFd gone = newSocket();
    const sockaddr_un address = addressOf(stale);
    ASSERT_EQ(::bind(gone.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  EXPECT_EQ(inChild([&] {
              const Device device(0);
              return connects(newSocket().get(), ownPath(folder_)) ? 0 : 1;
            }),
            0);
  EXPECT_FALSE(std::filesystem::exists(stale));
}

}  // namespace
}  // namespace faultline::testing
