#include "resilient_ccl/channel/load_meter.h"

#include <gtest/gtest.h>

namespace faultline::channel {
namespace {

TEST(LoadMeterTest, CountsTimeUnderLoadAndWhatWasAcknowledgedInIt) {
  LoadMeter meter(100);
  const TimePoint begin = TimePoint{} + 1s;
  meter.update(50, 0, begin);         // busy, not loaded
  meter.update(150, 0, begin + 1ms);  // loaded
  meter.update(110, 40, begin + 3ms);
  meter.update(60, 50, begin + 6ms);  // no more
  meter.update(0, 60, begin + 7ms);
  const LinkLoad load = meter.at(begin + 1s);
  EXPECT_EQ(load.acknowledged, 150);
  EXPECT_EQ(load.outstanding, 0);
  EXPECT_EQ(load.busy, 7ms);
  EXPECT_EQ(load.loaded, 5ms);
  EXPECT_EQ(load.loadedBytes, 90);
}

TEST(LoadMeterTest, CountsUpToNow) {
  LoadMeter meter(100);
  const TimePoint begin = TimePoint{} + 1s;
  meter.update(200, 0, begin);
  EXPECT_EQ(meter.at(begin + 5ms).loaded, 5ms);
  EXPECT_EQ(meter.at(begin + 9ms).busy, 9ms) << "looking changes nothing";
  EXPECT_EQ(meter.at(begin + 9ms).loadedBytes, 0);
}

}  // namespace
}  // namespace faultline::channel
