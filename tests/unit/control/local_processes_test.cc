#include "harness/site/local_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/launch/message_channel.h"
#include "harness/launch/process.h"
#include "wire/rank.h"

// What processes say, and what is said for them when they have ended.

namespace faultline::site {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

int sendAndEnd(const json& message) {
  launch::MessageChannel controller{UniqueFd(launch::kMessagesFd)};
  return controller.send(message).ok() ? 0 : 1;
}

class LocalProcessesTest : public ::testing::Test {
 protected:
  /// Until the process has ended, or with the first error.
  Status listen(int (*body)(), const Processes::Received& received) {
    launch::SpawnOptions options;
    options.body = body;
    ASSIGN_OR_RETURN(const auto group, LocalProcesses::start({options}, "the guard"));
    constexpr int kNoInterrupt = -1;
    const TimePoint deadline = now() + 10s;
    while (!group->allEnded() && now() < deadline) {
      RETURN_IF_ERROR(group->poll(10ms, kNoInterrupt, received));
    }
    return okStatus();
  }
};

TEST_F(LocalProcessesTest, WhoEndsWithoutALastWordIsGone) {
  std::vector<json> heard;
  const Status status =
      listen([] { return sendAndEnd(wire::toJson(wire::FromRank(wire::Ready{}))); },
             [&](int, const json& message) {
               heard.push_back(message);
               return okStatus();
             });
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0]["type"], "ready");
  EXPECT_TRUE(wire::isGone(heard[1])) << heard[1];
}

TEST_F(LocalProcessesTest, NobodySaysOfHimselfThatHeIsGone) {
  const Status status =
      listen([] { return sendAndEnd(wire::toJson(wire::FromRank(wire::Gone{"not at all"}))); },
             [](int, const json&) { return okStatus(); });
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("listen to the guard 0: it says of itself"));
}

TEST_F(LocalProcessesTest, AnErrorOfTheListenerNamesWhoWasHeard) {
  const Status status = listen(
      [] {
        return sendAndEnd(json{{"type", "explode"}});
      },
      [](int, const json& message) { return wire::fromJson<wire::FromRank>(message).status(); });
  EXPECT_THAT(status.message(), HasSubstr("listen to the guard 0: type: expected one of joined"));
}

}  // namespace
}  // namespace faultline::site
