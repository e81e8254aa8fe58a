#include "resilient_ccl/channel/control_stream.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

TEST(ControlStreamTest, ARepetitionIsDroppedAndSoIsWhatCannotBeRemembered) {
  ControlStream stream;
  EXPECT_TRUE(stream.accept(2));
  EXPECT_FALSE(stream.accept(2));
  EXPECT_TRUE(stream.accept(1));
  EXPECT_FALSE(stream.accept(1));
  EXPECT_FALSE(stream.accept(0));
  EXPECT_FALSE(stream.accept(1'000'000));
  EXPECT_EQ(stream.received().base, 2u);
}

TEST(ControlStreamTest, ARecordIsRepeatedUntilItsReceipt) {
  ControlStream stream;
  stream.send(RecordType::kGrant, {}, false);
  TimePoint now(1s);
  const auto sent = [&] {
    int count = 0;
    stream.collect(now, [&](const Record&, int, bool) { ++count; });
    return count;
  };
  for (int attempt = 0; attempt < 20; ++attempt) {
    EXPECT_EQ(sent(), 1);
    EXPECT_EQ(sent(), 0) << "before its time";
    EXPECT_LE(stream.nextDeadline(), now + ControlStream::kLongestPause);
    now = stream.nextDeadline();
  }
  stream.acknowledged({.base = 77, .beyond = 0});  // a lie
  EXPECT_FALSE(stream.idle());
  stream.acknowledged({.base = 1, .beyond = 0});
  EXPECT_TRUE(stream.idle());
  EXPECT_EQ(sent(), 0);
}

}  // namespace
}  // namespace faultline::channel
