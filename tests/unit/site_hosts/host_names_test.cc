#include "harness/site/hosts/host_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/site/hosts/name_lookup.h"
#include "tests/support/poll_until.h"
#include "tests/support/run_program.h"

namespace faultline::hosts {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string whyNot(const Result<std::vector<std::string>>& names) {
  return names.ok() ? "" : names.status().message();
}

Environment with(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  };
}

TEST(HostfileTest, HasANameOnEachLine) {
  EXPECT_THAT(*parseHostfile(
                  "n1\nn2 slots=4 max_slots=8\n\n  # all of them\n\tn3 # the third\r\nn1\nn4", "f"),
              ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_EQ(whyNot(parseHostfile("n1\nn2 n3\n", "f")),
            "f:2: 'n3' follows the name of the host: one host is on each line");
  EXPECT_EQ(whyNot(parseHostfile("# none\n\n", "f")), "f: names no host");
}

TEST(AllocationTest, IsWhatItsVariablesSay) {
  EXPECT_THAT(*hostsOfAllocation(with({{"SLURM_JOB_NODELIST", "n[1-2],x"}})),
              ElementsAre("n1", "n2", "x"));
  EXPECT_THAT(whyNot(hostsOfAllocation(with({{"SLURM_JOB_NODELIST", "n[1-"}}))),
              HasSubstr("list of hosts 'n[1-'"));
  EXPECT_THAT(whyNot(hostsOfAllocation(with({}))), HasSubstr("not inside of an allocation"));
  const testing::TemporaryFolder folder;
  const std::string file = folder.write("nodes", "p1\np1\np2\n");
  EXPECT_THAT(*hostsOfAllocation(with({{"PBS_NODEFILE", file}})), ElementsAre("p1", "p2"));
  EXPECT_THAT(*hostsOfAllocation(with({{"OMPI_MCA_orte_default_hostfile", file}})),
              ElementsAre("p1", "p2"));
  EXPECT_THAT(whyNot(hostsOfAllocation(with({{"PBS_NODEFILE", file + "x"}}))),
              StartsWith("PBS_NODEFILE: "));
}

TEST(JobTest, HasHostsWhileItRuns) {
  EXPECT_THAT(*hostsOfJob("7", "RUNNING n[0-1]\n"), ElementsAre("n0", "n1"));
  EXPECT_THAT(whyNot(hostsOfJob("7", "PENDING \n")), HasSubstr("job 7 is PENDING"));
  EXPECT_THAT(whyNot(hostsOfJob("7", "COMPLETING n[0-1]\n")), HasSubstr("job 7 is COMPLETING"));
  EXPECT_THAT(whyNot(hostsOfJob("7", "")), HasSubstr("job 7 is over"));
  EXPECT_THAT(whyNot(hostsOfJob("7", "RUNNING n0\nRUNNING n1\n")), HasSubstr("job 7 is an array"));
}

TEST(FindHostsTest, PutsTheNamesOfAFileInItsPlace) {
  const testing::TemporaryFolder folder;
  site::ClusterSpec spec;
  spec.settings["hosts"] = {folder.write("nodes", "a\nb\n")};
  EXPECT_EQ(findHosts(spec).reason, "");
  EXPECT_THAT(spec.settings["hosts"], ElementsAre("a", "b"));
  EXPECT_EQ(findHosts(spec).reason, "") << "they are there now";
  EXPECT_THAT(spec.settings["hosts"], ElementsAre("a", "b"));
  spec.settings["hosts"] = {"/nowhere/nodes"};
  EXPECT_EQ(findHosts(spec).key, "hosts");
  EXPECT_THAT(findHosts(spec).reason, HasSubstr("/nowhere/nodes"));
  spec.settings["hosts"] = {};
  spec.settings["launcher"] = {"local"};
  EXPECT_THAT(findHosts(spec).reason, HasSubstr("with 'launcher: local' the names are yours"));
}

TEST(FindHostsTest, AsksForAJobOutsideOfIt) {
  // A program in place of squeue, which says with what it was asked.
  const testing::TemporaryFolder folder;
  const std::string squeue = folder.write(
      "squeue",
      "#!/bin/sh\n[ \"$*\" = '-h -j 7 -o %T %N' ] || { echo \"no job $*\" >&2; exit 1; }\n"
      "echo 'RUNNING n[1-2]'\n");
  std::filesystem::permissions(squeue, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  site::ClusterSpec spec;
  spec.settings["job"] = {"7"};
  EXPECT_EQ(findHosts(spec).reason, "");
  EXPECT_THAT(spec.settings["hosts"], ElementsAre("n1", "n2"));
  spec.settings["hosts"] = {};
  spec.settings["job"] = {"8"};
  EXPECT_THAT(findHosts(spec).reason,
              HasSubstr("hosts: job 8: squeue: exit code 1, 'no job -h -j 8 -o %T %N'"));
  ::setenv("PATH", path.c_str(), 1);
}

TEST(ReachedAtTest, IsTheAddressOfTheNameWhereSshHasNotComeFromOutside) {
  wire::HostFacts facts;
  facts.reachedAt = "192.0.2.1";  // of the machine on which somebody logged in
  facts.ports = {{.name = "lo", .addresses = {"127.0.0.1/8"}},
                 {.name = "eth0", .addresses = {"10.0.0.1/24"}}};
  findReachedAt({"127.0.0.1"}, facts);
  EXPECT_EQ(facts.reachedAt, "192.0.2.1") << "nobody else reaches it there";
  findReachedAt({"127.0.0.1", "10.0.0.7", "10.0.0.1"}, facts);
  EXPECT_EQ(facts.reachedAt, "10.0.0.1");
  findReachedAt({"127.0.0.1"}, facts);
  EXPECT_EQ(facts.reachedAt, "10.0.0.1") << "it is one of its own";
  facts.reachedAt = "127.0.0.1";  // ssh to this machine itself
  findReachedAt({"10.0.0.1"}, facts);
  EXPECT_EQ(facts.reachedAt, "10.0.0.1");
}

TEST(NameLookupTest, AnswersForEachName) {
  const NameLookup lookup({"localhost", "192.0.2.7", "a name with blanks"});
  ASSERT_TRUE(test::pollUntil(
      60s, [&] { return lookup.answer(0) && lookup.answer(1) && lookup.answer(2); }));
  EXPECT_THAT(*lookup.answer(0), Contains("127.0.0.1"));
  EXPECT_THAT(*lookup.answer(1), ElementsAre("192.0.2.7"));
  EXPECT_THAT(*lookup.answer(2), IsEmpty());
}

TEST(SectionTest, IsALauncherWithHostsOrThoseOfTheAllocation) {
  EXPECT_EQ(*sectionOf("slurm"), "cluster: {kind: hosts, launcher: slurm}\n");
  EXPECT_EQ(*sectionOf("ssh:n[1-2],x"),
            "cluster: {kind: hosts, launcher: ssh, hosts: [\"n1\",\"n2\",\"x\"]}\n");
  EXPECT_THAT(sectionOf("ssh:n[1-").status().message(), HasSubstr("brackets are not in pairs"));
  EXPECT_EQ(*sectionOf("my_hosts.yaml"), "");
  EXPECT_EQ(*sectionOf("./slurm"), "") << "a file";
  EXPECT_EQ(*sectionOf(""), "");
}

}  // namespace
}  // namespace faultline::hosts
