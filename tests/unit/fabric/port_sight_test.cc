#include "resilient_ccl/fabric/port_sight.h"

#include <gtest/gtest.h>

namespace faultline::fabric {
namespace {

TEST(PortSightTest, OfNoPortNothingIsKnown) {
  EXPECT_FALSE(PortSight().lost());
  EXPECT_FALSE(PortSight().seesCarrier());
}

TEST(PortSightTest, APortThatIsNotThereIsLost) {
  EXPECT_TRUE(PortSight("no-such-device").lost());
  EXPECT_FALSE(PortSight("no-such-device").seesCarrier());
}

}  // namespace
}  // namespace faultline::fabric
