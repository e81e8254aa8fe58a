#include <array>

#include "harness/site/hosts/launcher_list.h"

namespace faultline::hosts {
namespace {

std::vector<site::Refusal> checkMpirun(const HostsSpec& spec) {
  return checkProgramWords("mpirun", "--mca, plm_rsh_args, -F FILE", spec.mpirun);
}

std::vector<std::string> mpirunCommand(const HostsSpec& spec, const std::string& host,
                                       const std::string& program) {
  // In a job of Slurm its daemons are steps: beside what else runs in the job.
  std::vector<std::string> command{"env", "-u", "SSH_CONNECTION", "SLURM_OVERLAP=1"};
  command.insert(command.end(), spec.mpirun.begin(), spec.mpirun.end());
  // Root is no mistake here. Of one process it would give the agent, and so all ranks of the host,
  // one core.
  command.insert(command.end(), {"--allow-run-as-root", "-np", "1", "--host", host, "--bind-to",
                                 "none", "--wdir", "/"});
  const std::vector<std::string> agent = agentWords(program);
  command.insert(command.end(), agent.begin(), agent.end());
  return command;
}

site::MachineCheck checkMpirunHere() {
  return programCheck("mpirun", "mpirun", "install openmpi-bin, here and on the hosts");
}

constexpr std::array<std::string_view, 5> kMpirunNoise{
    "setpgid failed", "This usually is caused by", "This is usually due to",
    "Primary job  terminated normally", "a non-zero exit code. Per user-direction"};

constexpr std::array kMpirunMeanings{
    Meaning{"Could not resolve hostname", "no host has this name here"},
    Meaning{"could not access",
            "the program is not on the host at this path: name it by 'program'"},
    Meaning{"not enough slots", "is the host one of the allocation's?"},
    Meaning{"hosts in the allocation", "is the host one of the allocation's?"},
    Meaning{"unable to reliably start",
            "the same Open MPI must be on the host, and ssh must reach it without a password"},
};

}  // namespace

constinit const Launcher kMpirunLauncher{.name = "mpirun",
                                         .doc = "mpirun of Open MPI, for each host one",
                                         .program = "mpirun",
                                         .patience = 60s,
                                         .check = checkMpirun,
                                         .command = mpirunCommand,
                                         .noise = kMpirunNoise,
                                         .meanings = kMpirunMeanings,
                                         .checkMachine = checkMpirunHere};

}  // namespace faultline::hosts
