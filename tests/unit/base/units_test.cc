#include "base/units.h"

#include <gtest/gtest.h>

namespace faultline {
namespace {

TEST(UnitsTest, DurationsNeedAUnit) {
  EXPECT_EQ(*parseDuration("50ms"), 50ms);
  EXPECT_EQ(*parseDuration("1.5s"), 1500ms);
  EXPECT_EQ(*parseDuration("2min"), 120s);
  for (const char* bad :
       {"", "5", "ms", "5 ms", "5parsecs", "-3s", "1e400s", "nan s", "nans", "infs"}) {
    EXPECT_FALSE(parseDuration(bad).ok()) << bad;
  }
}

TEST(UnitsTest, SizesTellBinaryFromDecimal) {
  EXPECT_EQ(*parseSize("4MiB"), 4 << 20);
  EXPECT_EQ(*parseSize("4MB"), 4'000'000);
  EXPECT_EQ(*parseSize("0B"), 0);
  EXPECT_FALSE(parseSize("4M").ok());
  EXPECT_FALSE(parseSize("99999999999GiB").ok());
}

TEST(UnitsTest, RatesAreBitsPerSecond) {
  EXPECT_EQ(*parseRate("400Mbit"), 400'000'000);
  EXPECT_EQ(*parseRate("1Gbit"), 1'000'000'000);
  EXPECT_FALSE(parseRate("400MiB").ok());
}

TEST(UnitsTest, MessagesNameTheUnitsToUse) {
  const Status status = parseDuration("5").status();
  EXPECT_NE(status.message().find("ms"), std::string::npos) << status.message();
}

TEST(UnitsTest, FormattingIsReadBack) {
  for (const Duration duration :
       {Duration(0), Duration(1500ms), Duration(2s), Duration(90min), Duration(17)}) {
    EXPECT_EQ(*parseDuration(formatDuration(duration)), duration) << formatDuration(duration);
  }
  for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{4 << 20}, Bytes{1000}, Bytes{1025}}) {
    EXPECT_EQ(*parseSize(formatSize(bytes)), bytes) << formatSize(bytes);
  }
  EXPECT_EQ(formatRate(400'000'000), "400Mbit");
  EXPECT_EQ(formatSize(4 << 20), "4MiB");
  EXPECT_EQ(formatDuration(1500ms), "1500ms");
}

}  // namespace
}  // namespace faultline
