#include <gtest/gtest.h>

#include <string>

#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

// What faults need of the kernel, in words.

namespace faultline::injector {
namespace {

TEST(FaultNeedsTest, ThoseThatNeedAMechanismAreNamedInTheOrderOfTheList) {
  EXPECT_EQ(faultsThatNeed(KernelMechanism::kShaper), "the fault throttle");
  EXPECT_EQ(faultsThatNeed(KernelMechanism::kBridgePortState),
            "the faults blackhole and path_flap");
  EXPECT_EQ(faultsThatNeed(KernelMechanism::kDropFilter),
            "the faults late_delivery, one_way_loss and loss");
  EXPECT_EQ(faultsThatNeed(KernelMechanism::kSocketDestroy),
            "the fault connection_reset (how: reset)");
}

TEST(FaultNeedsTest, OnlyFaultsOfNodesOfThisMachineNeedAnything) {
  int needing = 0;
  for (const FaultKind& kind : faultKinds()) {
    if (kind.needs.mechanism == KernelMechanism::kNone) {
      EXPECT_TRUE(kind.needs.when.empty()) << kind.name;
      continue;
    }
    ++needing;
    EXPECT_EQ(kind.target, TargetKind::kLink) << kind.name;
  }
  EXPECT_GT(needing, 10);
}

TEST(FaultNeedsTest, TheFirstWithAPropertyIsFound) {
  EXPECT_EQ(firstFaultKind(&FaultKind::slows).name, "throttle");
  EXPECT_TRUE(firstFaultKind(&FaultKind::ofQueuePairs).ofQueuePairs);
}

}  // namespace
}  // namespace faultline::injector
