#pragma once

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

#include "tests/support/run_program.h"

namespace faultline::cli {

/// Runs a verb as the program does, in a folder of its own that is gone afterwards.
class CommandTest : public ::testing::Test {
 protected:
  using AddCommand = CLI::App* (*)(CLI::App&, int&);

  CommandTest(std::string verb, AddCommand add) : verb_(std::move(verb)), add_(add) {}

  /// The exit code; what it printed is in out_ and err_.
  int run(const std::string& arguments) {
    CLI::App app;
    int exit_code = -1;
    add_(app, exit_code);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    app.parse(verb_ + " " + arguments);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return exit_code;
  }

 private:
  const std::string verb_;
  const AddCommand add_;
  const testing::TemporaryFolder folder_;

 protected:
  const std::string directory_ = folder_.path().string();
  std::string out_;
  std::string err_;
};

}  // namespace faultline::cli
