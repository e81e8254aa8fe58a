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

/// For a child that opened a device: no exit handler runs there.
void removeOwnSocket() {
  ::unlink(injector::verbs::socketPath(injector::verbs::defaultFolder(::geteuid()), ::getpid(),
                                       injector::verbs::pidNamespaceOf("self"))
               .c_str());
}

class ForkTest : public ShimTest {};

TEST_F(ForkTest, NothingOfTheControlThreadsIsLeftWhileControllersComeAndGo) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  const std::string folder = injector::verbs::defaultFolder(::geteuid());
  // The listener; the connection of the test before this one may be open for a moment.
  EXPECT_TRUE(becomes([&] { return controlSocketsHere(folder) == 1; }));
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

TEST_F(ForkTest, WhoHasNoControlItselfHasChildrenThatGetTheirs) {
  const Device device(0);
  EXPECT_EQ(inChild([] {
              return inChild([] {  // neither it nor its parent has opened a device
                const Device own(1);
                const bool there = Connection::open(::getpid()).ok();
                removeOwnSocket();
                return there ? 0 : 1;
              });
            }),
            0);
}

TEST_F(ForkTest, AChildDoesNotWaitForAThreadThatWasPolling) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(longDelay(qp)));
  postSend(qp, 1);
  device.poll();
  ASSERT_EQ(valueOf(control.counters(fault)).held, 1u) << "each poll looks for it";
  std::atomic<bool> stop{false};
  std::thread poller([&] {
    while (!stop) device.poll();
  });
  for (int i = 0; i < 20 && !HasFailure(); ++i) {
    EXPECT_EQ(inChild([&] { return shimLibrary().destroyQp(qp); }), 0) << i;
  }
  stop = true;
  poller.join();
}

TEST_F(ForkTest, AChildDoesNotWaitForAThreadThatWasPosting) {
  Device device(0);
  // Completes nothing, so that nobody is in the middle of the fake device either.
  ibv_qp* const qp = device.makeQp(0, /*signal_all=*/false);
  Connection control = connect();
  valueOf(control.arm(rule(Effect::kQpRate, qp)));
  std::atomic<bool> stop{false};
  std::thread poster([&] {
    while (!stop) postSend(qp, 1, 1);
  });
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    EXPECT_EQ(inChild([&] {
                Device own(1);
                ibv_qp* const its = own.makeQp(0, /*signal_all=*/false);
                auto inner = Connection::open(::getpid());
                if (!inner.ok()) return 20;
                const auto armed = inner->arm(rule(Effect::kQpRate, its));
                if (!armed.ok()) return 21;
                const int result = postSend(qp, 1, 1) + postSend(its, 1, 1);
                removeOwnSocket();
                return result;
              }),
              0)
        << i;
  }
  stop = true;
  poster.join();
}

// They are the parent's, whose job would go on without them.
TEST_F(ForkTest, WhatAChildInheritsNoFaultOfTheChildConcerns) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  EXPECT_EQ(inChild([&] {
              Device own(1);
              ibv_qp* const its = own.makeQp();
              auto inner = Connection::open(::getpid());
              if (!inner.ok()) return 20;
              const auto listed = inner->list();
              const bool alone =
                  listed.ok() && listed->size() == 1 && listed->front().number == its->qp_num;
              const bool refused = !inner->arm(rule(Effect::kQpError, qp)).ok();
              Rule any = rule(Effect::kQpError);
              any.one = true;
              const auto armed = inner->arm(any);
              const bool struck = armed.ok() && becomes([&] {
                                    return valueOf(inner->counters(*armed)).happened == 1;
                                  });
              removeOwnSocket();
              return alone && refused && struck ? 0 : 1;
            }),
            0);
  EXPECT_EQ(valueOf(control.list()).size(), 1u);
  EXPECT_EQ(postSend(qp, 1), 0);
  EXPECT_EQ(idsOf(device.poll()).size(), 1u) << "it works as ever";
}

}  // namespace
}  // namespace faultline::testing
