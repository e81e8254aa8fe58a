#include "harness/site/hosts/hosts_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/site/hosts/launcher.h"

namespace faultline::hosts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

HostsSpec two() {
  HostsSpec spec;
  spec.launcher = findLauncher("ssh");
  spec.names = {"n1", "user@n2.example"};
  spec.ssh = {"ssh"};
  spec.srun = {"srun"};
  spec.mpirun = {"mpirun"};
  spec.railChoice.automatic = true;
  return spec;
}

std::string firstWrong(const HostsSpec& spec) {
  const auto wrong = check(spec);
  return wrong.empty() ? "" : wrong.front().key + " | " + wrong.front().reason;
}

TEST(HostsSpecTest, IsReadFromTheKeys) {
  site::ClusterSpec cluster;
  cluster.rails = 3;
  cluster.settings = {{"launcher", {"local"}}, {"hosts", {"a", "b"}},  {"management", {"auto"}},
                      {"program", {"/x/y"}},   {"ssh", {"ssh", "-F"}}, {"lease", {"3s"}}};
  const HostsSpec spec = hostsSpec(cluster);
  EXPECT_EQ(spec.launcher->name, "local");
  EXPECT_THAT(spec.names, ElementsAre("a", "b"));
  EXPECT_EQ(spec.management, "");
  EXPECT_EQ(spec.program, "/x/y");
  EXPECT_THAT(spec.ssh, ElementsAre("ssh", "-F"));
  EXPECT_EQ(spec.lease, 3s);
  EXPECT_EQ(spec.rails, 3);
  cluster.settings["management"] = {"eth7"};
  cluster.settings["launcher"] = {"ssh"};
  EXPECT_EQ(hostsSpec(cluster).management, "eth7");
  EXPECT_THAT(hostsSpec(cluster).srun, ElementsAre("srun")) << "nothing is said";
  EXPECT_EQ(hostsSpec(cluster).launcher->name, "ssh");
}

TEST(HostsSpecTest, WhatIsWrongIsToldAtItsKey) {
  EXPECT_EQ(firstWrong(two()), "");
  HostsSpec spec = two();
  spec.names.clear();
  EXPECT_THAT(firstWrong(spec), HasSubstr("hosts | "));
  for (const char* const name : {"-oProxyCommand=x", "-v", "a b", "a;b", "", "$(x)"}) {
    spec = two();
    spec.names.push_back(name);
    EXPECT_THAT(firstWrong(spec), HasSubstr("is no name of a host")) << name;
  }
  spec = two();
  spec.ssh = {"ssh -F x"};
  EXPECT_THAT(firstWrong(spec), HasSubstr("ssh | ssh: 'ssh -F x' is one word: write a list"));
  spec = two();
  spec.names.assign(513, "n");
  EXPECT_THAT(firstWrong(spec), HasSubstr("hosts | hosts: 512 are possible, not 513"));
  spec.names.assign(512, "n");
  spec.ranksPerNode = 8;
  EXPECT_EQ(firstWrong(spec), "") << "4096 ranks";
  spec.ranksPerNode = 9;
  EXPECT_THAT(firstWrong(spec), HasSubstr("ranks_per_node | ranks_per_node: 9 of each of 512"));
  spec = two();
  spec.launcher = findLauncher("slurm");
  EXPECT_EQ(firstWrong(spec), "");
  spec.srun = {"srun --qos=x"};
  EXPECT_THAT(firstWrong(spec), HasSubstr("srun | srun: 'srun --qos=x' is one word"));
  spec.srun = {"srun"};
  spec = two();
  spec.launcher = findLauncher("mpirun");
  spec.mpirun = {"mpirun --mca x"};
  EXPECT_THAT(firstWrong(spec), HasSubstr("mpirun | mpirun: 'mpirun --mca x' is one word"));
}

TEST(HostsSpecTest, RailsOfEachHostAreThoseOfAllHosts) {
  HostsSpec spec = two();
  spec.railChoice = {.automatic = false, .names = {}, .byNode = {{"n1", {"eth1"}}}};
  EXPECT_THAT(firstWrong(spec), HasSubstr("those of user@n2.example are missing"));
  spec.railChoice.byNode["user@n2.example"] = {"eth1", "eth2"};
  EXPECT_THAT(firstWrong(spec), HasSubstr("as many as the others"));
  spec.railChoice.byNode["user@n2.example"] = {"eth2"};
  EXPECT_EQ(firstWrong(spec), "");
  spec.railChoice.byNode["n3"] = {"eth1"};
  EXPECT_THAT(firstWrong(spec), HasSubstr("'n3' is none of the hosts"));
  spec = two();
  spec.railChoice.names.assign(17, "eth");
  EXPECT_THAT(firstWrong(spec), HasSubstr("16 of a host are possible"));
}

TEST(HostsSpecTest, OneMachineHasNoInterfacesToChooseFrom) {
  HostsSpec spec = two();
  spec.launcher = findLauncher("local");
  EXPECT_EQ(firstWrong(spec), "");
  spec.railChoice = {.automatic = false, .names = {"eth1"}};
  EXPECT_THAT(firstWrong(spec), HasSubstr("rails | "));
  spec = two();
  spec.launcher = findLauncher("local");
  spec.management = "eth0";
  EXPECT_THAT(firstWrong(spec), HasSubstr("management | "));
}

}  // namespace
}  // namespace faultline::hosts
