#include "harness/launch/privileges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace faultline::launch {
namespace {

using ::testing::HasSubstr;

TEST(PrivilegesTest, EachRefusalNamesItsCauseAndTheSetting) {
  const auto message = [](int error, const UserNamespaceFacts& facts) {
    return explainUserNamespaceRefusal(error, facts).message();
  };
  EXPECT_THAT(message(EPERM, {.apparmor_restricts = true}),
              HasSubstr("kernel.apparmor_restrict_unprivileged_userns=0"));
  EXPECT_THAT(message(EPERM, {.unprivileged_disabled = true}),
              HasSubstr("kernel.unprivileged_userns_clone=1"));
  EXPECT_THAT(message(ENOSPC, {}), HasSubstr("user.max_user_namespaces"));
  EXPECT_THAT(message(EPERM, {.limit_is_zero = true}), HasSubstr("user.max_user_namespaces"));
  EXPECT_THAT(message(EPERM, {}), HasSubstr("container"));
  EXPECT_EQ(explainUserNamespaceRefusal(EPERM, {}).code(), Code::kPermissionDenied);
  EXPECT_EQ(explainUserNamespaceRefusal(EINVAL, {}).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace faultline::launch
