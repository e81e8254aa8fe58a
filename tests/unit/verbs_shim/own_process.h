#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "injector/verbs/address.h"
#include "tests/support/run_program.h"

namespace faultline::testing {

inline constexpr const char* kInnerVariable = "FAULTLINE_TEST_INNER";

/// Whether this is the process that inOwnProcess() has started.
inline bool isInner() { return std::getenv(kInnerVariable) != nullptr; }

/// Runs the current case once more in a process of its own, where isInner(): with this library
/// behind the shim, which loads it once for all, and with tables of which nobody has used a place.
/// What it wrote to stderr.
inline std::string inOwnProcess(const std::string& library) {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  ::setenv(kInnerVariable, "1", 1);
  ::setenv(injector::verbs::kLibraryVariable, library.c_str(), 1);
  const Ran ran = runProgram("/proc/self/exe", {std::string("--gtest_filter=") +
                                                test.test_suite_name() + "." + test.name()});
  ::unsetenv(kInnerVariable);
  ::unsetenv(injector::verbs::kLibraryVariable);
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, ::testing::HasSubstr("[  PASSED  ] 1 test")) << ran.err;
  return ran.err;
}

}  // namespace faultline::testing
