#include "resilient_ccl/fabric/host_identity.h"

#include <gtest/gtest.h>

namespace faultline::fabric {
namespace {

TEST(HostIdentityTest, IsThereAndStaysTheSame) {
  EXPECT_FALSE(hostIdentity().empty());
  EXPECT_EQ(hostIdentity(), hostIdentity());
}

}  // namespace
}  // namespace faultline::fabric
