#include "resilient_ccl/comm/survivors.h"

#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "tests/unit/comm/thread_job.h"

namespace faultline::comm {
namespace {

Result<UniqueFd> door() { return transport::tcp::openListener({kLoopback, "", 0}); }

/// Takes connections until one is kept by who opened it, and is gone then without a word, as a host
/// that loses its power: a socket under repair sends nothing when it is closed. False: not allowed.
bool takeOneAndVanish(UniqueFd listener) {
  for (;;) {
    pollfd waiting{listener.get(), POLLIN, 0};
    ::poll(&waiting, 1, -1);
    UniqueFd taken(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    pollfd closed{taken.get(), POLLIN, 0};
    if (::poll(&closed, 1, 50) > 0) continue;
    const int on = 1;
    return setsockopt(taken.get(), IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)) == 0;
  }
}

TEST(SurvivorsTest, WhoVanishesWithoutAWordIsNotWaitedForToTheEnd) {
  auto first = door(), own = door();
  ASSERT_TRUE(first.ok() && own.ok());
  SurvivorOptions options{.rank = 1,
                          .jobKey = auth::JobKey::random(),
                          .address = kLoopback,
                          .doors = {*transport::tcp::localEndpoint(first->get()),
                                    *transport::tcp::localEndpoint(own->get())},
                          .door = own->get(),
                          .patience = 4s};
  bool vanished = false;
  std::thread leader([&] { vanished = takeOneAndVanish(std::move(*first)); });
  const TimePoint begin = now();
  const auto found = gatherSurvivors(options);
  const Duration took = now() - begin;
  leader.join();
  if (!vanished) GTEST_SKIP() << "TCP_REPAIR needs CAP_NET_ADMIN: run as root";
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->ranks, (std::vector{1}));
  EXPECT_LT(took, options.patience) << "others give up on this one after that";
}

}  // namespace
}  // namespace faultline::comm
