#include "resilient_ccl/fabric/host_identity.h"

#include <gtest/gtest.h>

namespace faultline::fabric {
namespace {

TEST(HostIdentityTest, IsThereAndStaysTheSame) {
  EXPECT_FALSE(hostIdentity().empty());
  EXPECT_EQ(hostIdentity(), hostIdentity());
}

// From the authors' test program (test_fnv.c), of 64 bits.
TEST(HostIdentityTest, TheNumberOfAnIdentityIsFnv1aOfItsBytes) {
  EXPECT_EQ(fingerprintOf("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fingerprintOf("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(fingerprintOf(""), 0u) << "not known";
}

}  // namespace
}  // namespace faultline::fabric
