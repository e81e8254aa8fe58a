#include "harness/control/load_meter.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace faultline::run {
namespace {

TEST(LoadMeterTest, TheFirstLineOfStatIsReadByItsColumns) {
  const auto ticks = processorTicks("cpu  100 5 20 1000 30 2 3 7 50 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->programs, 125);
  EXPECT_EQ(ticks->interrupts, 5);
  EXPECT_EQ(ticks->stolen, 7);
  EXPECT_EQ(ticks->all, 1167) << "guests are in user time already";
}

TEST(LoadMeterTest, WhatIsNoSuchTextSaysNothing) {
  for (const char* const text : {"", "cpu", "cpu 1 2 3", "cpux 1 2 3 4 5 6 7 8", "intr 1"}) {
    EXPECT_FALSE(processorTicks(text)) << text;
  }
  EXPECT_FALSE(loadAverage(""));
  EXPECT_FALSE(waitedMicroseconds("full avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"));
  EXPECT_FALSE(waitedMicroseconds("some avg10=0.00"));
}

TEST(LoadMeterTest, AveragesAndPressureAreRead) {
  EXPECT_EQ(loadAverage("1.25 0.80 0.50 2/345 6789\n"), 1.25);
  EXPECT_EQ(waitedMicroseconds("some avg10=0.00 avg60=0.10 avg300=0.20 total=123456\n"
                               "full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n"),
            123456);
}

/// A machine of two processors with 100 ticks a second, whose files a test writes.
struct Machine {
  std::map<std::string, std::string> files;
  Duration own{};

  void at(int user, int idle, int stolen, const char* average, int waited) {
    files["/proc/stat"] = "cpu " + std::to_string(user) + " 0 0 " + std::to_string(idle) +
                          " 0 0 0 " + std::to_string(stolen) + " 0 0\n";
    files["/proc/loadavg"] = average;
    files["/proc/pressure/cpu"] = "some avg10=0 total=" + std::to_string(waited) + "\n";
  }
  LoadMeter::Source source() {
    return {.read = [this](const char* path) { return files[path]; },
            .ownTime = [this] { return own; },
            .ticksPerSecond = 100};
  }
};

TEST(LoadMeterTest, WhatIsOursIsNoLoadOfOthers) {
  Machine machine;
  const TimePoint began = TimePoint(100s);
  machine.at(0, 0, 0, "0.5", 0);
  LoadMeter meter(began, machine.source());
  machine.at(20, 180, 0, "1.5", 100'000);  // a second: 10 % busy
  meter.keepUp(began + 1s);
  machine.at(140, 240, 20, "1.0", 700'000);  // 60 % busy, 10 % stolen
  machine.own = 1200ms;                      // 120 of the 140 ticks
  const reports::MachineLoad load = meter.finish(began + 2s);
  EXPECT_EQ(load.samples, 2);
  ASSERT_TRUE(load.others_pct && load.busy_pct && load.stolen_pct && load.load_average &&
              load.waiting_pct);
  EXPECT_DOUBLE_EQ(*load.others_pct, 5);
  EXPECT_DOUBLE_EQ(load.busy_pct->min, 10);
  EXPECT_DOUBLE_EQ(load.busy_pct->max, 60);
  EXPECT_DOUBLE_EQ(load.busy_pct->median, 35);
  EXPECT_DOUBLE_EQ(load.stolen_pct->max, 10);
  EXPECT_DOUBLE_EQ(load.load_average->median, 1);
  EXPECT_DOUBLE_EQ(load.load_average->max, 1.5);
  EXPECT_DOUBLE_EQ(*load.waiting_pct, 35);
}

TEST(LoadMeterTest, MoreOfOursThanTheKernelCountedIsNoNegativeLoad) {
  Machine machine;
  machine.at(0, 0, 0, "0", 0);
  LoadMeter meter(TimePoint(1s), machine.source());
  machine.at(100, 100, 0, "0", 0);
  machine.own = 2s;
  EXPECT_EQ(meter.finish(TimePoint(2s)).others_pct, 0);
}

TEST(LoadMeterTest, FilesAreReadNoMoreOftenThanSaid) {
  Machine machine;
  machine.at(0, 0, 0, "0", 0);
  const TimePoint began = TimePoint(1s);
  LoadMeter meter(began, machine.source());
  machine.at(10, 90, 0, "0", 0);
  meter.keepUp(began + LoadMeter::kEvery / 2);
  machine.at(20, 180, 0, "0", 0);
  EXPECT_EQ(meter.finish(began + LoadMeter::kEvery).samples, 1);
}

TEST(LoadMeterTest, AKernelThatSaysNothingLeavesNothing) {
  Machine machine;
  LoadMeter meter(TimePoint(1s), machine.source());
  const reports::MachineLoad load = meter.finish(TimePoint(2s));
  EXPECT_EQ(load.samples, 0);
  EXPECT_FALSE(load.others_pct || load.busy_pct || load.stolen_pct || load.load_average ||
               load.waiting_pct);
}

TEST(LoadMeterTest, TheProcessorTimeOfThisProcessCountsAsOurs) {
  const LoadMeter::Source machine = LoadMeter::machine();
  const Duration before = machine.ownTime();
  volatile double sum = 0;
  while (machine.ownTime() < before + 20ms) sum = sum + 1;
  EXPECT_GE(machine.ownTime() - before, 20ms);
  EXPECT_GT(machine.ticksPerSecond, 0);
}

}  // namespace
}  // namespace faultline::run
