#include "injector/safety/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "injector/safety/policy_file.h"

namespace faultline::safety {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::array<std::string_view, 2> kKinds{"port_down", "throttle"};

Result<Policy> read(std::string_view text) { return parsePolicy(text, "p.yaml", kKinds); }

constexpr const char* kWhole =
    "version: 1\n"
    "may_strike: [eth1, \"0000:17:00.0\"]\n"
    "kinds: [port_down]\n"
    "longest: 30s\n"
    "at_once: {node: 2, job: 1}\n"
    "before: \"/bin/drain on 'a b'\"\n"
    "after: /bin/drain off\n"
    "command_limit: 5s\n"
    "keep: [10.0.0.1, \"fe80::1%eth0\"]\n"
    "users: [alice]\n"
    "groups: [hpc, staff]\n";

std::string mistake(const std::string& text) {
  const auto policy = read(text);
  return policy.ok() ? "none" : policy.status().message();
}

/// kWhole with a line in place of that of the same key, or added.
std::string with(const std::string& line) {
  const std::string key = line.substr(0, line.find(':') + 1);
  std::string text;
  bool placed = false;
  std::istringstream lines(kWhole);
  for (std::string one; std::getline(lines, one);) {
    const bool same = one.starts_with(key);
    text += (same ? line : one) + "\n";
    placed = placed || same;
  }
  return placed ? text : text + line + "\n";
}

TEST(PolicyTest, IsRead) {
  const auto policy = read(kWhole);
  ASSERT_TRUE(policy.ok()) << policy.status().message();
  EXPECT_THAT(policy->mayStrike, ElementsAre("eth1", "0000:17:00.0"));
  EXPECT_THAT(policy->kinds, ElementsAre("port_down"));
  EXPECT_EQ(policy->longest, 30s);
  EXPECT_EQ(policy->mostOfNode, 2);
  EXPECT_EQ(policy->mostOfJob, 1);
  EXPECT_THAT(policy->before, ElementsAre("/bin/drain", "on", "a b"));
  EXPECT_THAT(policy->after, ElementsAre("/bin/drain", "off"));
  EXPECT_EQ(policy->commandLimit, 5s);
  EXPECT_THAT(policy->keep, ElementsAre("10.0.0.1", "fe80::1%eth0"));
  EXPECT_THAT(policy->users, ElementsAre("alice"));
  EXPECT_THAT(policy->groups, ElementsAre("hpc", "staff"));
}

TEST(PolicyTest, NamesWhoMayAskTheService) {
  const auto refusal = [](const Policy& policy, const Caller& caller) {
    return mayAsk(policy, caller).message();
  };
  const Policy none;
  EXPECT_EQ(refusal(none, {.uid = 0, .user = "root"}), "");
  EXPECT_THAT(refusal(none, {.uid = 1000, .user = "alice", .groups = {"hpc"}}),
              HasSubstr("lets root ask the fault service, and not alice"));
  Policy some;
  some.users = {"alice"};
  some.groups = {"hpc", "staff"};
  EXPECT_EQ(refusal(some, {.uid = 1000, .user = "alice"}), "");
  EXPECT_EQ(refusal(some, {.uid = 1001, .user = "bob", .groups = {"bob", "staff"}}), "");
  EXPECT_THAT(refusal(some, {.uid = 1001, .user = "bob", .groups = {"alice", "bob"}}),
              HasSubstr("lets root, alice and the groups hpc, staff ask"));
  EXPECT_EQ(refusal(some, {.uid = 0, .user = "toor"}), "") << "root by its number";
}

TEST(PolicyTest, MistakesHaveTheirPlace) {
  EXPECT_EQ(mistake(with("longst: 3s")),
            "p.yaml:12:1: a policy has no key 'longst' (did you mean 'longest'?)");
  EXPECT_THAT(mistake(with("version: 2")), HasSubstr("p.yaml:1:10: version: expected 1"));
  EXPECT_THAT(mistake(with("may_strike: [eth*]")), HasSubstr("p.yaml:2:14: 'eth*' is neither"));
  EXPECT_THAT(mistake(with("may_strike: [\"17:00.0\"]")), HasSubstr("nor a PCI address"));
  EXPECT_THAT(mistake(with("may_strike: []")), HasSubstr("an empty one"));
  EXPECT_THAT(mistake(with("may_strike: eth1")), HasSubstr("expected a list, like [eth1]"));
  EXPECT_THAT(mistake(with("may_strike: [eth1, eth1]")), HasSubstr("'eth1' is there twice"));
  EXPECT_THAT(mistake(with("may_strike: [[eth1]]")), HasSubstr("expected a word"));
  EXPECT_THAT(mistake(with("kinds: [port_dwn]")), HasSubstr("did you mean 'port_down'"));
  EXPECT_THAT(mistake(with("longest: 30")), HasSubstr("expected a duration, like 30s"));
  EXPECT_THAT(mistake(with("longest: 0s")), HasSubstr("longer than nothing"));
  EXPECT_THAT(mistake(with("at_once: {node: 0}")), HasSubstr("a number from 1 to"));
  EXPECT_THAT(mistake(with("at_once: {node: 1x}")), HasSubstr("a number from 1 to"));
  EXPECT_THAT(mistake(with("at_once: {host: 1}")), HasSubstr("at_once has no key 'host'"));
  EXPECT_THAT(mistake(with("at_once: 2")), HasSubstr("at_once is a mapping"));
  EXPECT_THAT(mistake(with("before: drain on")), HasSubstr("'drain' is no absolute path"));
  EXPECT_THAT(mistake(with("before: [/bin/drain]")), HasSubstr("expected a command"));
  EXPECT_THAT(mistake(with("before: \"/bin/x 'a\"")), HasSubstr("p.yaml:6:9: "));
  EXPECT_THAT(mistake(with("keep: [controller]")), HasSubstr("'controller' is no address"));
  EXPECT_THAT(mistake("version: 1\nversion: 1\n"), HasSubstr("p.yaml:2:1: duplicate key"));
  EXPECT_THAT(mistake("[eth1]\n"), HasSubstr("a policy is a mapping of keys, found a list"));
  EXPECT_THAT(mistake(""), HasSubstr("there is nothing in it"));
  EXPECT_THAT(mistake("a: &x 1\n"), HasSubstr("anchors (&name) are not used in policies"));
  EXPECT_THAT(mistake("version: 1\n"),
              AllOf(HasSubstr("needs 'may_strike'"), HasSubstr("needs 'kinds'"),
                    HasSubstr("needs 'longest'")));
  EXPECT_THAT(mistake("version: 1\nmay_strike: [a]\nkinds: [port_down]\nlongest: 1s\n"
                      "before: /bin/x\n"),
              HasSubstr("belong together"));
}

TEST(PolicyTest, AllowsWhatItSaysAndNothingElse) {
  const auto policy = read(kWhole);
  ASSERT_TRUE(policy.ok());
  const Request good{.interface = "eth1", .kind = "port_down", .length = 30s};
  EXPECT_TRUE(allows(*policy, good).ok());
  Request one = good;
  one.interface = "eth7";
  EXPECT_THAT(allows(*policy, one).message(), HasSubstr("lets eth1, 0000:17:00.0 be struck, and "
                                                        "not eth7"));
  one.pci = "0000:17:00.0";
  EXPECT_TRUE(allows(*policy, one).ok()) << "by its place, whatever it is called";
  one.pci = "0000:17:00.1";
  EXPECT_EQ(allows(*policy, one).code(), Code::kPermissionDenied);
  one = good;
  one.kind = "throttle";
  EXPECT_THAT(allows(*policy, one).message(), HasSubstr("allows port_down, and not throttle"));
  one = good;
  one.length = 30s + 1ns;
  EXPECT_THAT(allows(*policy, one).message(), HasSubstr("30s at most"));
  one = good;
  one.heldOnNode = 2;
  EXPECT_THAT(allows(*policy, one).message(), HasSubstr("2 at once on this machine"));
  one.heldOnNode = 1;
  EXPECT_TRUE(allows(*policy, one).ok());
  one.heldByJob = 1;
  EXPECT_THAT(allows(*policy, one).message(), HasSubstr("1 at once of one job"));
  EXPECT_EQ(allows(*policy, one).code(), Code::kUnavailable);
}

TEST(PolicyTest, WhatIsOfferedToStartFromIsOne) {
  const auto policy = read(policyToStartFrom("eth1", "port_down"));
  ASSERT_TRUE(policy.ok()) << policy.status().message();
  EXPECT_TRUE(allows(*policy, {.interface = "eth1", .kind = "port_down", .length = 10s}).ok());
  EXPECT_THAT(inWords(*policy), HasSubstr("eth1 may be struck, by port_down, for 10s at most"));
}

TEST(PolicyFileTest, OnlyWhatRootAloneCanChangeIsTrusted) {
  EXPECT_EQ(whyUntrusted(0, 0644, false), "");
  EXPECT_EQ(whyUntrusted(0, 0755, true), "");
  EXPECT_EQ(whyUntrusted(0, 01777, true), "") << "what is in /tmp stays its owner's";
  EXPECT_THAT(whyUntrusted(0, 01777, false), HasSubstr("others than root may write it"));
  EXPECT_THAT(whyUntrusted(0, 0775, true), HasSubstr("others than root may write it"));
  EXPECT_THAT(whyUntrusted(0, 0777, true), HasSubstr("others than root may write it"));
  EXPECT_THAT(whyUntrusted(0, 0664, false), HasSubstr("others than root may write it"));
  EXPECT_THAT(whyUntrusted(1000, 0600, false), HasSubstr("belongs to user 1000"));
  EXPECT_THAT(whyUntrusted(1000, 0755, true), HasSubstr("belongs to user 1000"));
}

}  // namespace
}  // namespace faultline::safety
