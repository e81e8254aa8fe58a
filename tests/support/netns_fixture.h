#pragma once

#include <gtest/gtest.h>

#include "harness/launch/privileges.h"

namespace faultline::test {

/// Base of all tests that make namespaces. Skips, with the reason, only where the machine cannot:
/// neither root nor user namespaces. Everything that fails after that is a failure.
class NetnsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Entering is once per process; ctest runs each case in a process of its own, and a whole
    // program run by hand is inside from its first case on.
    static const Result<launch::Privileges> privileges = launch::enterPrivileges();
    if (!privileges.ok()) GTEST_SKIP() << privileges.status().message();
  }
};

#define ASSERT_OK(expression)                                        \
  do {                                                               \
    const ::faultline::Status asserted_status = (expression);        \
    ASSERT_TRUE(asserted_status.ok()) << asserted_status.toString(); \
  } while (false)
#define EXPECT_OK(expression)                                        \
  do {                                                               \
    const ::faultline::Status& expected_status = (expression);       \
    EXPECT_TRUE(expected_status.ok()) << expected_status.toString(); \
  } while (false)

/// `declaration = value`, or a fatal failure with the error.
#define ASSERT_OK_AND_ASSIGN(declaration, expression) \
  ASSERT_OK_AND_ASSIGN_INNER(FAULTLINE_CONCAT(asserted_result_, __LINE__), declaration, expression)
#define ASSERT_OK_AND_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                                       \
  ASSERT_TRUE(result.ok()) << result.status().toString();           \
  declaration = std::move(result).value()

}  // namespace faultline::test
