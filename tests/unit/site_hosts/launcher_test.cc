#include "harness/site/hosts/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/site/hosts/launcher_list.h"

namespace faultline::hosts {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

HostsSpec by(const std::string& launcher) {
  HostsSpec spec;
  spec.launcher = findLauncher(launcher);
  spec.ssh = {"ssh"};
  spec.srun = {"srun"};
  spec.mpirun = {"mpirun"};
  return spec;
}

/// What of a command follows this word.
std::vector<std::string> after(const std::vector<std::string>& command, const std::string& word) {
  const auto at = std::ranges::find(command, word);
  return at == command.end() ? std::vector<std::string>()
                             : std::vector<std::string>(at + 1, command.end());
}

TEST(LauncherTest, IsFoundByItsNameAndHasAllThatIsAskedOfARow) {
  ASSERT_EQ(launchers().size(), kLauncherNames.size());
  for (std::size_t i = 0; i < kLauncherNames.size(); ++i) {
    const Launcher* const launcher = findLauncher(kLauncherNames[i]);
    ASSERT_EQ(launcher, launchers()[i]) << kLauncherNames[i];
    EXPECT_FALSE(launcher->doc.empty() || launcher->program.empty()) << launcher->name;
    EXPECT_GT(launcher->patience, Duration::zero()) << launcher->name;
    ASSERT_NE(launcher->command, nullptr) << launcher->name;
    EXPECT_THAT(agentCommand(by(std::string(launcher->name)), "n1", "/opt/x").back(),
                HasSubstr("--stdio"));
  }
  EXPECT_EQ(findLauncher("rsh"), nullptr);
  EXPECT_EQ(launchers().front()->name, "ssh") << "the default";
}

TEST(LauncherTest, TheCommandOfSshKeepsTheShellAtBay) {
  HostsSpec spec = by("ssh");
  spec.ssh = {"ssh", "-F", "my config"};
  EXPECT_THAT(agentCommand(spec, "n1", "/opt/it's/faultline"),
              ElementsAre("ssh", "-T", "-a", "-x", "-o", "BatchMode=yes", "-o",
                          "ClearAllForwardings=yes", "-F", "my config", "-o", "ConnectTimeout=10",
                          "n1", "exec '/opt/it'\\''s/faultline' agent --stdio"));
  spec.program = "/usr/bin/faultline";
  EXPECT_EQ(agentCommand(spec, "n1", "/opt/x").back(), "exec '/usr/bin/faultline' agent --stdio");
  spec.program = "~/my bin/faultline";
  EXPECT_EQ(agentCommand(spec, "n1", "/opt/x").back(), "exec ~/'my bin/faultline' agent --stdio");
}

TEST(LauncherTest, SlurmStartsAStepThatPassesBytesAtOnce) {
  HostsSpec spec = by("slurm");
  spec.srun = {"srun", "--qos=test"};
  const std::vector<std::string> command = agentCommand(spec, "n1", "/opt/faultline");
  EXPECT_EQ(command.front(), "env");
  EXPECT_THAT(command, Contains("SLURM_LABELIO")) << "it would come before what the agent says";
  for (const char* const fewerCores :
       {"SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_TASK", "SLURM_THREADS_PER_CORE", "SLURM_HINT"}) {
    EXPECT_THAT(command, Contains(fewerCores)) << "ranks would share some cores of the host";
  }
  const std::vector<std::string> step = after(command, "srun");
  ASSERT_FALSE(step.empty());
  EXPECT_EQ(step.front(), "--qos=test");
  for (const char* const option : {"--overlap", "--unbuffered", "--nodelist=n1", "--ntasks=1",
                                   "--nodes=1", "--cpu-bind=none", "--no-kill"}) {
    EXPECT_THAT(step, Contains(option));
  }
  EXPECT_THAT(after(command, "--chdir=/"), ElementsAre("/opt/faultline", "agent", "--stdio"));
  EXPECT_THAT(command, Not(Contains(HasSubstr("--jobid")))) << "srun knows in which it is";
  spec.job = "17";
  spec.program = "~/bin/faultline";
  const std::vector<std::string> outside = agentCommand(spec, "n1", "/opt/faultline");
  EXPECT_THAT(outside, Contains("--jobid=17"));
  EXPECT_THAT(after(outside, "--chdir=/"),
              ElementsAre("sh", "-c", "exec ~/'bin/faultline' agent --stdio"));
}

TEST(LauncherTest, MpirunStartsOneProcessThatHasAllCores) {
  HostsSpec spec = by("mpirun");
  spec.mpirun = {"mpirun", "--mca", "plm_rsh_args", "-F x"};
  const std::vector<std::string> command = agentCommand(spec, "n1", "/opt/faultline");
  EXPECT_THAT(command, Contains("SLURM_OVERLAP=1"));
  EXPECT_THAT(
      after(command, "mpirun"),
      ElementsAre("--mca", "plm_rsh_args", "-F x", "--allow-run-as-root", "-np", "1", "--host",
                  "n1", "--bind-to", "none", "--wdir", "/", "/opt/faultline", "agent", "--stdio"));
}

TEST(LauncherTest, LocalStartsTheAgentItself) {
  EXPECT_THAT(agentCommand(by("local"), "n1", "/opt/x"), ElementsAre("/opt/x", "agent", "--stdio"));
}

TEST(LauncherTest, SlurmNeedsAnAllocationOrAJob) {
  HostsSpec spec = by("slurm");
  ::unsetenv("SLURM_JOB_ID");
  EXPECT_THAT(spec.launcher->ready(spec).message(), HasSubstr("not inside of an allocation"));
  spec.job = "17";
  EXPECT_TRUE(spec.launcher->ready(spec).ok());
  spec.job = "";
  ::setenv("SLURM_JOB_ID", "18", 1);
  EXPECT_TRUE(spec.launcher->ready(spec).ok());
  ::unsetenv("SLURM_JOB_ID");
}

TEST(LauncherTest, SaysWhatItsErrorsMean) {
  // As Slurm 22.05 and Open MPI 4.1 print them.
  const Launcher& slurm = *findLauncher("slurm");
  const std::string cancelled =
      reasonOf(slurm,
               "srun: cluster configuration lacks support for cpu binding\n"
               "srun: Job step aborted: Waiting up to 4 seconds for job step to finish.\n"
               "slurmstepd-n2: error: *** STEP 2.0 ON n2 CANCELLED AT 2026-12-01T04:57:26 ***\n");
  EXPECT_EQ(cancelled,
            "'slurmstepd-n2: error: *** STEP 2.0 ON n2 CANCELLED AT 2026-12-01T04:57:26 ***': the "
            "job, or the agent's step of it, has been cancelled");
  EXPECT_THAT(reasonOf(slurm,
                       "slurmstepd: error: *** STEP 1.0 ON n2 CANCELLED AT 2026-12-01T04:57:26 DUE "
                       "TO TIME LIMIT ***\n"),
              HasSubstr(": the time limit of the job is over"));
  EXPECT_THAT(reasonOf(slurm, "srun: error: Node failure on n2\n"),
              HasSubstr(": Slurm takes the host for dead"));
  EXPECT_THAT(reasonOf(slurm, "slurmstepd-n2: error: execve(): /x: No such file or directory\n"),
              HasSubstr("name it by 'program'"));
  EXPECT_EQ(reasonOf(slurm, "srun: cluster configuration lacks support for cpu binding\n"), "");
  EXPECT_EQ(reasonOf(slurm, "srun: something new\n"), "'srun: something new'");

  const std::string bar(76, '-');
  const std::string printed = bar +
                              "\nORTE was unable to reliably start one or more daemons.\n"
                              "This usually is caused by:\n\n* not finding\n" +
                              bar + "\n";
  const std::string mpirun = reasonOf(*findLauncher("mpirun"), printed);
  EXPECT_THAT(mpirun, HasSubstr("'ORTE was unable to reliably start one or more daemons."));
  EXPECT_THAT(mpirun, HasSubstr("the same Open MPI must be on the host"));
  EXPECT_THAT(mpirun, Not(HasSubstr("--")));
  EXPECT_THAT(reasonOf(*findLauncher("ssh"), "n1: Permission denied (publickey).\r\n"),
              HasSubstr("set up a key"));
  EXPECT_EQ(reasonOf(*findLauncher("ssh"), ""), "");
}

}  // namespace
}  // namespace faultline::hosts
