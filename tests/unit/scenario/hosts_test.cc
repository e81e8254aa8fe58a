#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/scenario/cluster_reader.h"
#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"

// Clusters of kind hosts, in a scenario and in a file of their own.

namespace faultline::scenario {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string hostsText(const std::string& cluster,
                      const std::string& more = "strategies: [fault_free]\n",
                      const std::string& workload = "{kind: training}") {
  return "version: 1\nname: h\ncluster: " + cluster + "\nworkload: " + workload + "\n" + more;
}

std::string hostsProblems(const std::string& scenario, const ClusterFile& file = {}) {
  std::string lines;
  for (const Mistake& mistake :
       readScenario(scenario, "f.yaml", {}, RunsOn::kAnyMachine, file).mistakes) {
    lines += mistake.toString() + "\n";
  }
  return lines;
}

Scenario readHosts(const std::string& scenario, const ClusterFile& file = {}) {
  auto result = readScenario(scenario, "f.yaml", {}, RunsOn::kAnyMachine, file);
  if (!result.ok()) throw std::runtime_error(hostsProblems(scenario, file));
  return *std::move(result.scenario);
}

TEST(Hosts, AreReadWithWhatFollowsFromThem) {
  const Cluster cluster =
      readHosts(hostsText("{kind: hosts, hosts: [n1, n2, n3], ranks_per_node: 2}")).cluster;
  EXPECT_EQ(cluster.kind->name, "hosts");
  EXPECT_EQ(cluster.nodes, 3);
  EXPECT_EQ(cluster.ranks(), 6);
  EXPECT_TRUE(cluster.railChoice.automatic);
  EXPECT_EQ(cluster.railRate, 0) << "nobody knows it yet";
  EXPECT_EQ(cluster.settings.at("launcher").front(), "ssh");
  EXPECT_EQ(cluster.settings.at("lease").front(), "10s");
  EXPECT_FALSE(cluster.settings.contains("program"));
  EXPECT_EQ(railsInWords(cluster), "the rails that are found");
}

TEST(Hosts, RailsAreANumberNamesOrNamesOfEach) {
  const auto rails = [](const std::string& written) {
    return readHosts(hostsText("{kind: hosts, hosts: [a, b], rails: " + written + "}")).cluster;
  };
  EXPECT_TRUE(rails("auto").railChoice.automatic);
  EXPECT_EQ(rails("3").rails, 3);
  EXPECT_EQ(rails("3").railChoice, site::RailChoice{});
  EXPECT_EQ(rails("[eth1, eth2]").rails, 2);
  EXPECT_THAT(rails("[eth1, eth2]").railChoice.names, ::testing::ElementsAre("eth1", "eth2"));
  EXPECT_EQ(rails("{a: [eth1], b: [eth7]}").railChoice.byNode.at("b").front(), "eth7");
  EXPECT_EQ(rails("{a: [eth1], b: [eth7]}").rails, 1);
}

TEST(Hosts, WhatIsWrongIsToldInItsPlace) {
  const auto wrong = [](const std::string& cluster) { return hostsProblems(hostsText(cluster)); };
  EXPECT_THAT(wrong("{kind: hosts}"),
              HasSubstr("f.yaml:3:10: hosts: none are named, and this is not inside of an"));
  EXPECT_THAT(wrong("{kind: hosts, hosts: [a], nodes: 2}"),
              HasSubstr("f.yaml:3:43: nodes: nodes of a cluster of kind hosts are those that it "
                        "names; remove it"));
  EXPECT_THAT(wrong("{kind: hosts, hosts: [-x]}"), HasSubstr("is no name of a host"));
  EXPECT_THAT(wrong("{kind: hosts, hosts: [a, a]}"), HasSubstr("is listed twice"));
  EXPECT_THAT(wrong("{kind: hosts, hosts: [a, b], rails: {a: [eth1]}}"),
              HasSubstr("those of b are missing"));
  EXPECT_THAT(wrong("{kind: hosts, hosts: [a], rails: []}"), HasSubstr("a list of names"));
  EXPECT_THAT(wrong("{kind: hosts, hosts: [a], rails: [e, e]}"), HasSubstr("listed twice"));
  EXPECT_THAT(wrong("{kind: hosts, hosts: [a], rails: many}"), HasSubstr("rails"));
  EXPECT_THAT(wrong("{kind: hosts, hosts: [a], launcher: pbs}"),
              HasSubstr("'pbs' is not one of ssh, slurm, mpirun, local"));
  EXPECT_THAT(wrong("{kind: hosts, hosts: [a], job: x}"), HasSubstr("job"));
  EXPECT_THAT(wrong("{kind: hosts, hosts: ./no_such_file}"),
              HasSubstr("hosts: read ./no_such_file"));
  EXPECT_THAT(wrong("{kind: hosts, hosts: [a], lease: 1ms}"), HasSubstr("lease"));
  EXPECT_THAT(wrong("{kind: netns, hosts: [a]}"),
              HasSubstr("hosts: is of a cluster of kind hosts"));
  EXPECT_THAT(wrong("{kind: netns, rails: auto}"), HasSubstr("rails"));
  EXPECT_THAT(wrong("{kind: netns, rails: [eth1]}"), HasSubstr("a whole number is expected"));
}

TEST(Hosts, WhatIsNotThereYetIsRefusedWithTheReason) {
  const std::string hosts = "{kind: hosts, hosts: [a, b, c]}";
  const auto faulted = [&](const std::string& kind) {
    return hostsProblems(
        hostsText(hosts, "strategies: [fault_free, hot_repair]\nfaults:\n  - {kind: " + kind +
                             ", target: {node: 1, rail: 0}, at: 1s, duration: 1s}\n"));
  };
  EXPECT_THAT(faulted("port_down"),
              (HasSubstr("f.yaml:7:5: how: on a host write 'admin': the carrier is lost at the "
                         "switch's end of the cable, which this host does not have")));
  EXPECT_EQ(faulted("port_down, how: admin"), "");
  EXPECT_THAT(faulted("reorder"), AllOf(HasSubstr("f.yaml:7:12"), HasSubstr("port_down")))
      << "with those that a host can have";
  EXPECT_THAT(hostsProblems(hostsText(hosts, "strategies: [fault_free, fail_stop]\n")),
              AllOf(HasSubstr("fail_stop: its ranks keep checkpoints"),
                    HasSubstr("'folder: /a/path/that/all/see'")));
  EXPECT_EQ(hostsProblems(hostsText("{kind: hosts, hosts: [a, b, c], folder: /shared}",
                                    "strategies: [fault_free, fail_stop]\n")),
            "");
  EXPECT_THAT(hostsProblems(hostsText("{kind: hosts, hosts: [a], folder: shared}")),
              HasSubstr("folder: 'shared' is no absolute path"));
}

TEST(Hosts, ProgramsWriteIntoFoldersOfTheirOwn) {
  const auto problems = [](const std::string& command) {
    return hostsProblems(hostsText("{kind: hosts, hosts: [a, b, c]}",
                                   "strategies: [fault_free, unprotected]\n",
                                   "{kind: command, command: {run: [x], " + command + "}}"));
  };
  EXPECT_EQ(problems("progress: p, metrics: {m: {json: 'x/y.json', path: a}}"), "");
  EXPECT_THAT(problems("progress: /tmp/p"),
              HasSubstr("progress: '/tmp/p' is not below the folder of the process"));
  EXPECT_THAT(problems("metrics: {m: {json: '../x.json', path: a}}"),
              HasSubstr("json: '../x.json' is not below the folder of the process"));
  EXPECT_EQ(problems("env: {A: '{rail_3_address_1}'}"), "") << "so many rails may be found";
  EXPECT_THAT(problems("env: {A: '{rail_3_address_3}'}"), HasSubstr("no placeholder"));
}

TEST(Hosts, AreWrittenAsTheyAreReadAgain) {
  for (const char* const cluster :
       {"{kind: hosts, hosts: [n1, n2]}", "{kind: hosts, hosts: [n1, n2], rails: 2}",
        "{kind: hosts, hosts: [n1, n2], rails: [eth1, eth2], rail_rate: 10Gbit}",
        "{kind: hosts, hosts: [n1, n2], rails: {n1: [a], n2: [b]}, program: /opt/faultline}",
        "{kind: hosts, hosts: [n1], launcher: local, lease: 2s}",
        "{kind: hosts, hosts: [n1], launcher: slurm, job: 17, srun: [srun, --qos=x]}",
        "{kind: hosts, hosts: [n1], ssh: [ssh, -F, my_config], management: eth0}"}) {
    const Scenario scenario = readHosts(hostsText(cluster));
    EXPECT_EQ(readHosts(toJson(scenario).dump()), scenario) << cluster;
  }
  Scenario found = readHosts(hostsText("{kind: hosts, hosts: [n1, n2]}"));
  found.cluster.railChoice.automatic = false;
  found.cluster.rails = 4;
  found.cluster.railRate = 25'000'000'000;
  EXPECT_EQ(readHosts(toJson(found).dump()), found) << "what was found is kept";
}

TEST(Hosts, ThatAreNotNamedAreThoseOfTheAllocation) {
  ::setenv("SLURM_JOB_NODELIST", "n[08-10]", 1);
  const Scenario scenario = readHosts(hostsText("{kind: hosts, launcher: slurm}"));
  ::unsetenv("SLURM_JOB_NODELIST");
  EXPECT_EQ(scenario.cluster.nodes, 3);
  EXPECT_THAT(scenario.cluster.settings.at("hosts"), ::testing::ElementsAre("n08", "n09", "n10"));
  EXPECT_EQ(readHosts(toJson(scenario).dump()), scenario) << "also outside of it";
}

TEST(Hosts, AWordOfTheCommandLineStandsForAFile) {
  const auto file = readClusterFile("ssh:n[1-2]");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(readHosts(hostsText("{nodes: 7}"), *file).cluster.nodes, 2);
  EXPECT_THAT(readClusterFile("ssh:n[1-").status().message(), HasSubstr("not in pairs"));
  EXPECT_THAT(readClusterFile("rsh:n1").status().message(), HasSubstr("cannot read"));
}

TEST(Hosts, AFileTakesThePlaceOfTheSection) {
  const ClusterFile file{"mine.yaml", "cluster:\n  kind: hosts\n  hosts: [x, y]\n"};
  for (const char* const own : {"{kind: netns, nodes: 7, rail_rate: 1Gbit}", "{}"}) {
    EXPECT_EQ(readHosts(hostsText(own), file).cluster.nodes, 2);
  }
  EXPECT_EQ(
      readHosts("version: 1\nname: h\nworkload: {kind: training}\nstrategies: [fault_free]\n", file)
          .cluster.kind->name,
      "hosts");
  const std::string scenario = hostsText("{nodes: 2}");
  EXPECT_THAT(hostsProblems(scenario, {"mine.yaml", "cluster:\n  kind: hosts\n  hots: [x]\n"}),
              AllOf(HasSubstr("mine.yaml:3:3: unknown key 'hots'"), HasSubstr("mine.yaml:2:3")));
  EXPECT_THAT(hostsProblems(scenario, {"mine.yaml", "cluster: {}\nname: x\n"}),
              HasSubstr("mine.yaml:1:1: a file for --cluster has the key 'cluster', and no other"));
  EXPECT_THAT(hostsProblems(scenario, {"mine.yaml", "cluster: [\n"}), HasSubstr("mine.yaml:"));
  EXPECT_THAT(hostsProblems(scenario, {"mine.yaml", "- 1\n"}), HasSubstr("has the key 'cluster'"));
}

}  // namespace
}  // namespace faultline::scenario
