#include <array>

#include "harness/site/hosts/launcher_list.h"

namespace faultline::hosts {
namespace {

std::vector<site::Refusal> checkSsh(const HostsSpec& spec) {
  return checkProgramWords("ssh", "-F, FILE", spec.ssh);
}

std::vector<std::string> sshCommand(const HostsSpec& spec, const std::string& host,
                                    const std::string& program) {
  // Before those of the user, as ssh takes the first value: no terminal, whose end would turn bytes
  // into others; nobody is there to be asked for a password; and neither ports nor keys nor the
  // screen of this machine are opened to a host, as for a login perhaps.
  std::vector<std::string> command{
      spec.ssh.front(), "-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes"};
  command.insert(command.end(), spec.ssh.begin() + 1, spec.ssh.end());
  command.insert(command.end(), {"-o", "ConnectTimeout=10"});
  command.push_back(host);
  command.push_back(agentLine(program));
  return command;
}

site::MachineCheck checkSshHere() { return programCheck("ssh", "ssh", "install openssh-client"); }

constexpr std::array kSshMeanings{
    Meaning{"Could not resolve hostname", "no host has this name here"},
    Meaning{"Host key verification failed",
            "log in by hand once, and compare the key that you are shown"},
    Meaning{"Permission denied (", "nobody is asked for a password: set up a key"},
};

}  // namespace

constinit const Launcher kSshLauncher{
    .name = "ssh",
    .doc = "ssh, as you have configured it",
    .program = "ssh",
    .patience = 30s,  // to connect and authenticate on a busy host; ssh itself gives up before
    .check = checkSsh,
    .command = sshCommand,
    .meanings = kSshMeanings,
    .checkMachine = checkSshHere};

}  // namespace faultline::hosts
