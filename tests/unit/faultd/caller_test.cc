#include "harness/faultd/caller.h"

#include <gtest/gtest.h>

namespace faultline::faultd {
namespace {

TEST(CallerTest, AJobIsThatOfSlurmsFolders) {
  EXPECT_EQ(jobOfCgroups("9:freezer:/slurm/uid_1000/job_17/step_0\n0::/system.slice\n"), "job 17");
  EXPECT_EQ(jobOfCgroups("7:memory:/slurm_n0/uid_0/job_3/step_batch/task_0\n"), "job 3");
  EXPECT_EQ(jobOfCgroups("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n"),
            "job 42");
}

TEST(CallerTest, AFolderThatAUserHasMadeIsNoJob) {
  EXPECT_EQ(jobOfCgroups("0::/user.slice/user-1000.slice/user@1000.service/slurm/job_17\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/docker/job_17\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/job_17/slurm\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/slurm/job_17x/y\n"), "");
  EXPECT_EQ(jobOfCgroups("0::/slurm/job_\n"), "");
}

TEST(CallerTest, OfNoCgroupThereIsNone) {
  EXPECT_EQ(jobOfCgroups(""), "");
  EXPECT_EQ(jobOfCgroups("0::/system.slice/ssh.service\n"), "");
}

}  // namespace
}  // namespace faultline::faultd
