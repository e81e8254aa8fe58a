// What fork() leaves to the child, whatever the program's threads and the shim's were doing.
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstddef>
#include <string_view>
#include <thread>

#include "injector/verbs/address.h"
#include "tests/unit/verbs_shim/child.h"
#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {
namespace {

constexpr int kMostDescriptors = 256;

/// Sockets that listen for controllers, or were accepted from them.
int controlSocketsHere(std::string_view folder) {
  int count = 0;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    sockaddr_un address{};
    socklen_t size = sizeof(address);
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
    if (address.sun_family != AF_UNIX || size <= offsetof(sockaddr_un, sun_path)) continue;
    if (std::string_view(address.sun_path).starts_with(folder)) ++count;
  }
  return count;
}

class ForkTest : public ShimTest {};

TEST_F(ForkTest, NothingOfTheControlThreadsIsLeftWhileControllersComeAndGo) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  const std::string folder = injector::verbs::defaultFolder(::geteuid());
  EXPECT_EQ(controlSocketsHere(folder), 1) << "the listener";
  std::atomic<bool> stop{false};
  std::atomic<int> armed{0};
  std::thread controllers([&] {
    while (!stop) {
      Connection first = connect();
      Connection second = connect();
      armed += first.arm(rule(Effect::kPostError, qp)).ok();
      armed += second.arm(rule(Effect::kPostError, qp)).ok();
    }
  });
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    EXPECT_EQ(inChild([&] { return controlSocketsHere(folder); }), 0) << i;
  }
  stop = true;
  controllers.join();
  EXPECT_GT(armed, 10);
}

}  // namespace
}  // namespace faultline::testing
