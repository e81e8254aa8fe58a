// Programs in user namespaces, as rootless containers have: they know themselves by other numbers.
#include "injector/verbs/user_map.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "injector/verbs/connection.h"
#include "tests/support/fake_shim.h"

namespace faultline::injector::verbs {
namespace {

using faultline::testing::FakeShim;

TEST(UserMapTest, TheOwnUserIsRootAndTheOthersFollow) {
  // As podman writes it for user 1000.
  constexpr std::string_view kRootless =
      "         0       1000          1\n"
      "         1     100000      65536\n";
  EXPECT_EQ(userInside(kRootless, 1000), 0u);
  EXPECT_EQ(userInside(kRootless, 100'000), 1u);
  EXPECT_EQ(userInside(kRootless, 100'004), 5u);
  EXPECT_EQ(userInside(kRootless, 165'535), 65'536u);
  for (const uid_t absent : {0u, 999u, 1001u, 99'999u, 165'536u}) {
    EXPECT_FALSE(userInside(kRootless, absent)) << absent;
  }
}

TEST(UserMapTest, TheFirstNamespaceChangesNothing) {
  constexpr std::string_view kFirst = "         0          0 4294967295\n";
  for (const uid_t user : {0u, 1000u, 4'294'967'294u}) EXPECT_EQ(userInside(kFirst, user), user);
}

TEST(UserMapTest, WhatIsNoMapHasNobody) {
  for (const std::string_view map : {"", "\n", "0", "0 1000", "a b c", "0 1000 0"}) {
    EXPECT_FALSE(userInside(map, 1000)) << map;
  }
  EXPECT_EQ(userInside("nonsense\n7 1000 1", 1000), 7u);
}

/// Becomes another user, of a user namespace of its own. False where that is forbidden.
bool becomeInside(uid_t inside) {
  const uid_t outside = ::geteuid();
  if (::unshare(CLONE_NEWUSER) != 0) return false;
  std::ofstream map("/proc/self/uid_map");
  map << inside << ' ' << outside << " 1" << std::flush;
  return map.good() && ::geteuid() == inside;
}

TEST(UserMapTest, AShimIsFoundWhereItsProcessThinksItIs) {
  constexpr uid_t kInside = 54'321;
  constexpr char kListens = 'y';
  constexpr char kForbidden = 'n';
  std::array<int, 2> told{};
  std::array<int, 2> life{};
  ASSERT_EQ(::pipe(told.data()), 0);
  ASSERT_EQ(::pipe(life.data()), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(life[1]);
    char byte = kForbidden;
    if (!becomeInside(kInside)) ::_exit(::write(told[1], &byte, 1) == 1 ? 0 : 1);
    {
      const FakeShim shim([](const Message&) {
        Message reply("ok");
        addShimFacts(reply, {.armed = 7});
        return reply;
      });
      byte = kListens;
      if (::write(told[1], &byte, 1) != 1) ::_exit(1);
      [[maybe_unused]] const ssize_t end = ::read(life[0], &byte, 1);
    }
    ::rmdir(defaultFolder(kInside).c_str());
    ::_exit(0);
  }
  ::close(told[1]);
  ::close(life[0]);
  char byte = 0;
  EXPECT_EQ(::read(told[0], &byte, 1), 1);
  if (byte == kListens) {
    auto connection = Connection::open(pid);
    EXPECT_TRUE(connection.ok()) << connection.status().message();
    if (connection.ok()) {
      const auto facts = connection->hello();
      EXPECT_TRUE(facts.ok()) << facts.status().message();
      EXPECT_EQ(facts.ok() ? facts->armed : 0, 7u);
    }
  }
  ::close(told[0]);
  ::close(life[1]);
  ::waitpid(pid, nullptr, 0);
  EXPECT_FALSE(std::filesystem::exists(defaultFolder(kInside)));
  if (byte == kForbidden) GTEST_SKIP() << "no user namespaces here";
}

}  // namespace
}  // namespace faultline::injector::verbs
