// The controller's end, against shims that are not ours: what answers is in somebody's program.
#include "injector/verbs/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "tests/support/fake_shim.h"

namespace faultline::injector::verbs {
namespace {

using faultline::testing::FakeShim;
using ::testing::HasSubstr;

Message countersReply(std::uint64_t happened) {
  Message reply("ok");
  Counters counters;
  counters.happened = happened;
  addCounters(reply, counters);
  return reply;
}

TEST(VerbsConnectionTest, AListWithoutEndIsNotReadForEver) {
  const FakeShim shim([](const Message&) {
    Message page("ok");
    page.add("total", UINT64_MAX);
    for (int i = 0; i < 100; ++i) page.add("qp", writeFacts({"a", 1, 2, 3, "::1", "RC", "RTS"}));
    return page;
  });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  const auto list = connection->list();
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.status().code(), Code::kIo);
  EXPECT_THAT(list.status().message(), HasSubstr("had no end"));
}

TEST(VerbsConnectionTest, WhoIsNotLetInIsToldSoThoughItHasAskedAlready) {
  const FakeShim shim(errorMessage(errorf(Code::kPermissionDenied, "not you")));
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  ASSERT_TRUE(connection->askCounters(1).ok());
  ::poll(nullptr, 0, 20);  // it closes
  const auto counters = connection->takeCounters(5s);
  EXPECT_EQ(counters.status().code(), Code::kPermissionDenied) << counters.status().message();
}

TEST(VerbsConnectionTest, AnAnswerThatNobodyTookIsNotTakenForTheNext) {
  const FakeShim shim(
      [](const Message& request) { return countersReply(request.verb() == "disarm" ? 7 : 3); });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  ASSERT_TRUE(connection->askCounters(1).ok());
  const auto counters = connection->disarm(1);
  ASSERT_TRUE(counters.ok()) << counters.status().message();
  EXPECT_EQ(counters->happened, 7u);
}

TEST(VerbsConnectionTest, NobodyWaitsForCountersThatDoNotCome) {
  const FakeShim shim([](const Message&) { return std::optional<Message>(); });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  ASSERT_TRUE(connection->askCounters(1).ok());
  const auto counters = connection->takeCounters(1ms);
  ASSERT_TRUE(counters.ok()) << counters.status().message();
  EXPECT_FALSE(counters->has_value());
}

}  // namespace
}  // namespace faultline::injector::verbs
