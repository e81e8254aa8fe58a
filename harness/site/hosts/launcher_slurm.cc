#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "harness/site/hosts/launcher_list.h"

namespace faultline::hosts {
namespace {

// What sbatch, users and logins set for steps of theirs, and what would be wrong for the step of an
// agent: more tasks, another place, names before what it says, less than all of its node, and where
// somebody has come to who logged in.
constexpr std::array<const char*, 21> kForeign{
    "SSH_CONNECTION",        "SLURM_LABELIO",           "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_SOCKET", "SLURM_NTASKS_PER_GPU",
    "SLURM_DISTRIBUTION",    "SLURM_HOSTFILE",          "SLURM_EXACT",
    "SLURM_EXCLUSIVE",       "SLURM_CPUS_PER_TASK",     "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",     "SRUN_CPUS_PER_TASK",      "SLURM_TRES_PER_TASK",
    "SLURM_GPUS_PER_TASK",   "SLURM_THREADS_PER_CORE",  "SLURM_HINT",
    "SLURM_CORE_SPEC",       "SLURM_TASK_PROLOG",       "SLURM_CPU_BIND"};

std::vector<site::Refusal> checkSlurm(const HostsSpec& spec) {
  return checkProgramWords("srun", "--cluster, NAME", spec.srun);
}

/// Without an allocation srun would ask for one of its own, for each host.
Status slurmReady(const HostsSpec& spec) {
  if (!spec.job.empty() || std::getenv("SLURM_JOB_ID") != nullptr) return okStatus();
  return errorf(
      Code::kUnavailable,
      "launcher slurm: this is not inside of an allocation: run it in a script of sbatch or "
      "in the shell of salloc, or name a job of yours: 'job: ID'");
}

std::vector<std::string> slurmCommand(const HostsSpec& spec, const std::string& host,
                                      const std::string& program) {
  std::vector<std::string> command{"env"};
  for (const char* const name : kForeign) command.insert(command.end(), {"-u", name});
  command.insert(command.end(), spec.srun.begin(), spec.srun.end());
  if (!spec.job.empty()) command.push_back("--jobid=" + spec.job);
  // --overlap: beside what else runs in the job. --unbuffered: else messages wait for the end of a
  // line; it is a terminal then, in raw mode. --mem=0: all of the job's memory there.
  command.insert(command.end(),
                 {"--overlap", "--nodes=1", "--ntasks=1", "--nodelist=" + host, "--no-kill",
                  "--kill-on-bad-exit=0", "--unbuffered", "--input=all", "--output=all",
                  "--error=all", "--mpi=none", "--cpu-bind=none", "--mem=0", "--chdir=/"});
  const std::vector<std::string> agent = agentWords(program);
  command.insert(command.end(), agent.begin(), agent.end());
  return command;
}

site::MachineCheck checkSlurmHere() {
  site::MachineCheck check = programCheck(
      "srun", "slurm", "use a login node of a cluster with Slurm, or install slurm-client");
  const char* const job = std::getenv("SLURM_JOB_ID");
  if (check.ok && job != nullptr) {
    const char* const nodes = std::getenv("SLURM_JOB_NODELIST");
    check.found += fmt::format(", in job {} on {}", job, nodes == nullptr ? "?" : nodes);
  }
  return check;
}

constexpr std::array<std::string_view, 4> kSlurmNoise{"lacks support for cpu binding",
                                                      "Waiting up to", "Force Terminated",
                                                      "forcing job termination"};

// The first that is found: the more precise ones first.
constexpr std::array kSlurmMeanings{
    Meaning{"DUE TO TIME LIMIT", "the time limit of the job is over"},
    Meaning{"DUE TO NODE FAILURE", "Slurm takes the host for dead"},
    Meaning{"Node failure on", "Slurm takes the host for dead"},
    Meaning{"CANCELLED AT", "the job, or the agent's step of it, has been cancelled"},
    Meaning{"task 0: Terminated",
            "the job, or the agent's step of it, is being cancelled, or its time is over"},
    Meaning{"execve()", "the program is not on the host at this path: name it by 'program'"},
    Meaning{"Invalid job id", "the job is over, or not one of this cluster"},
    Meaning{"Access/permission denied", "only the owner of a job gets steps in it"},
    Meaning{"Requested node configuration is not available", "is the host one of the job's?"},
    Meaning{"Requested nodes are busy", "another step of the job does not share the host"},
};

}  // namespace

constinit const Launcher kSlurmLauncher{.name = "slurm",
                                        .doc = "a step of a job of Slurm on each host, by srun",
                                        .program = "srun",
                                        .patience = 60s,  // slurmctld answers steps in turn
                                        .check = checkSlurm,
                                        .ready = slurmReady,
                                        .command = slurmCommand,
                                        .noise = kSlurmNoise,
                                        .meanings = kSlurmMeanings,
                                        .checkMachine = checkSlurmHere};

}  // namespace faultline::hosts
