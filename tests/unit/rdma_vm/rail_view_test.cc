// What proves a fault from outside a guest: each part of it is needed.
#include "harness/site/rdma_vm/rail_view.h"

#include <gtest/gtest.h>

#include <utility>

namespace faultline::rdma_vm {
namespace {

constexpr Duration kLong = 200ms;

RailView pulled() {
  return {.seen = wire::RailState{"down", false, "1: DOWN", "3: Disabled"}, .silent = kLong};
}

RailView cutOff() {
  return {.seen = wire::RailState{"up", true, "4: ACTIVE", "5: LinkUp"},
          .unserved = kLong,
          .arrived = 1,
          .dropped = 1};
}

TEST(RailView, ARailIsWholeWithACarrierAndAnActivePort) {
  EXPECT_TRUE(isWhole({"up", true, "4: ACTIVE", "5: LinkUp"}));
  EXPECT_FALSE(isWhole({"up", false, "4: ACTIVE", "5: LinkUp"}));
  EXPECT_FALSE(isWhole({"up", true, "1: DOWN", "5: LinkUp"}));
  EXPECT_FALSE(isWhole({"up", true, "2: INIT", "5: LinkUp"}));
}

TEST(RailView, ACableIsOutWhenTheGuestSaysSoAndTheSwitchGetsNothing) {
  EXPECT_TRUE(isPulled(pulled()));
  const auto still = [](auto change) {
    RailView view = pulled();
    change(view);
    return isPulled(view);
  };
  EXPECT_FALSE(still([](RailView& view) { view.seen.reset(); }));
  EXPECT_FALSE(still([](RailView& view) { view.seen->carrier = true; }));
  EXPECT_FALSE(still([](RailView& view) { view.seen->rdma = "4: ACTIVE"; }));
  EXPECT_FALSE(still([](RailView& view) { view.seen->rdma = "missing"; }));
  EXPECT_FALSE(still([](RailView& view) { view.silent = kLong - 1ns; }));
  EXPECT_FALSE(still([](RailView& view) { std::swap(view.silent, view.unserved); }));
  EXPECT_FALSE(isPulled(cutOff()));
}

TEST(RailView, TheSwitchDropsWhenItGetsFramesOfAWholeRailAndHandsItNone) {
  EXPECT_TRUE(isCutOff(cutOff()));
  const auto still = [](auto change) {
    RailView view = cutOff();
    change(view);
    return isCutOff(view);
  };
  EXPECT_FALSE(still([](RailView& view) { view.seen.reset(); }));
  EXPECT_FALSE(still([](RailView& view) { view.seen->carrier = false; }));
  EXPECT_FALSE(still([](RailView& view) { view.seen->rdma = "1: DOWN"; }));
  EXPECT_FALSE(still([](RailView& view) { view.arrived = 0; }));
  EXPECT_FALSE(still([](RailView& view) { view.dropped = 0; }));
  EXPECT_FALSE(still([](RailView& view) { view.unserved = kLong - 1ns; }));
  EXPECT_FALSE(still([](RailView& view) { std::swap(view.silent, view.unserved); }));
  EXPECT_FALSE(isCutOff(pulled()));
}

}  // namespace
}  // namespace faultline::rdma_vm
