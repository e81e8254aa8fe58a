#include "harness/faultd/caller.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "injector/safety/journal.h"

namespace faultline::faultd {
namespace {

TEST(CallerTest, AJobIsThatOfSlurmsFolders) {
  EXPECT_EQ(jobOfCgroups("9:freezer:/slurm/uid_1000/job_17/step_0\n0::/system.slice\n"), "job 17");
  EXPECT_EQ(jobOfCgroups("7:memory:/slurm_n0/uid_0/job_3/step_batch/task_0\n"), "job 3");
  EXPECT_EQ(jobOfCgroups("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n"),
            "job 42");
  EXPECT_EQ(jobOfCgroups("0::/system.slice/node1_slurmstepd.scope/job_5/step_0:/a\n"), "job 5");
}

TEST(CallerTest, AFolderThatAUserHasMadeIsNoJob) {
  EXPECT_EQ(jobOfCgroups("0::/user.slice/user-1000.slice/user@1000.service/slurm/job_17\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/user.slice/user-1000.slice/user@1000.service/a:/slurm/job_17\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/user.slice/a:/slurm/uid_1000/job_17\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/user.slice/a:/system.slice/slurmstepd.scope/job_17\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/system.slice/x-slurm-y.service/job_17\n"), "") << "Delegate=";
  EXPECT_EQ(jobOfCgroups("0::/system.slice/x.service/slurmstepd.scope/job_17\n"), "");
  EXPECT_EQ(jobOfCgroups("/slurm/uid_1000/job_17\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/docker/job_17\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/job_17/slurm\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/slurm/job_17x/y\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/slurm/job_\n"), "");
}

TEST(CallerTest, AProcessIsNotTakenForAnotherOneOfItsNumber) {
  const launch::LocalPeer self{.pid = ::getpid(), .uid = ::getuid(), .groups = {}};
  const std::uint64_t started = safety::holderOf(self.pid).started;
  EXPECT_TRUE(askerOf(self, started).ok());
  for (const std::uint64_t other : {started + 1, std::uint64_t{0}}) {
    EXPECT_EQ(askerOf(self, other).status().code(), Code::kPermissionDenied);
  }
}

TEST(CallerTest, OfNoCgroupThereIsNone) {
  EXPECT_EQ(jobOfCgroups(""), "");
  EXPECT_EQ(jobOfCgroups("0::/system.slice/ssh.service\n"), "");
}

}  // namespace
}  // namespace faultline::faultd
