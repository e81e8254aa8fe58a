// What the laboratory itself promises: programs run on hosts, and everything about them comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tests/support/laboratory_fixture.h"

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

TEST_F(LaboratoryTest, RunsProgramsOnAllHostsAtTheSameTimeAndBringsBackHowTheyEnd) {
  // They wait for others that are started only when all of these run.
  auto waits = program({"sh", "-c",
                        "until [ -e /run/go ]; do sleep 0.1; done; rm /run/go; hostname; "
                        "echo $WORD >&2; exit $CODE"});
  std::vector<int> jobs;
  for (const int host : {kServer, kClient}) {
    waits.environment = {{"CODE", std::to_string(3 + host)}, {"WORD", "to the error"}};
    ASSERT_OK_AND_ASSIGN(jobs.emplace_back(), lab_->start(host, waits));
  }
  const rdma_vm::RunRequest go = program({"touch", "/run/go"});
  ASSERT_OK_AND_ASSIGN(const std::vector<rdma_vm::RunOutput> gone,
                       lab_->runAll({{kServer, go}, {kClient, go}}));
  for (const rdma_vm::RunOutput& output : gone) EXPECT_TRUE(output.exit.ok());
  for (const int host : {kServer, kClient}) {
    ASSERT_OK_AND_ASSIGN(const rdma_vm::RunOutput output,
                         lab_->finish(jobs[static_cast<std::size_t>(host)]));
    EXPECT_EQ(output.exit.code, 3 + host) << output.err;
    EXPECT_EQ(output.out, "host" + std::to_string(host) + "\n");
    EXPECT_EQ(output.err, "to the error\n");
    EXPECT_FALSE(output.timedOut);
  }
}

TEST_F(LaboratoryTest, EndsAProgramWhoseTimeIsOverWithAllThatItHasStarted) {
  ASSERT_OK_AND_ASSIGN(const rdma_vm::RunOutput output,
                       lab_->run(kServer, shell("echo begun; setsid sleep 7654 & wait", 2s)));
  EXPECT_TRUE(output.timedOut);
  EXPECT_EQ(output.exit.signal, SIGTERM);
  EXPECT_EQ(output.out, "begun\n");
  EXPECT_THAT(mustRun(kServer, shell("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")),
              ::testing::Not(HasSubstr("sleep 7654")));
}

TEST_F(LaboratoryTest, TellsOfAProgramThatCannotBeRun) {
  EXPECT_EQ(lab_->run(kServer, program({"there-is-no-such-program"})).status().code(),
            Code::kNotFound);
  EXPECT_EQ(lab_->run(7, program({"true"})).status().code(), Code::kInvalidArgument);
  // It is there, and cannot be executed: only the guest finds out.
  rdma_vm::RunRequest request = program({"true"});
  request.workingDirectory = "/there/is/no/such/folder";
  const auto output = lab_->run(kServer, request);
  EXPECT_FALSE(output.ok());
  EXPECT_THAT(output.status().message(), HasSubstr("working directory"));
  mustRun(kServer, program({"true"}));
}

TEST_F(LaboratoryTest, WhatAGuestWritesIsNotOnTheMachine) {
  const std::string file = "/etc/faultline-written-by-a-guest";
  mustRun(kServer, shell("echo text > " + file));
  EXPECT_NE(::access(file.c_str(), F_OK), 0);
  EXPECT_EQ(mustRun(kServer, program({"cat", file})), "text\n");
  ASSERT_OK_AND_ASSIGN(const rdma_vm::RunOutput other, lab_->run(kClient, program({"cat", file})));
  EXPECT_NE(other.exit.code, 0) << "guests share nothing either";
}

}  // namespace
}  // namespace faultline::test
