#include "harness/command/variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "resilient_ccl/nccl/options.h"

namespace faultline::command {
namespace {

NetworkNames network() {
  return {.management = {"10.0.0.1", "10.0.0.2", "10.0.0.3"},
          .rails = {{"10.1.0.1", "10.2.0.1"}, {"10.1.0.2", "10.2.0.2"}, {"10.1.0.3", "10.2.0.3"}},
          .managementInterfaces = {"eth0", "eth0", "mgmt"},
          .railInterfaces = {{"a", "b"}, {"a", "b"}, {"rail0", "rail1"}}};
}

/// The last of four processes, on nodes 1 and 2 of three.
Place place() {
  return {.rank = 3,
          .node = 2,
          .localRank = 1,
          .nodes = {1, 2},
          .perNode = 2,
          .output = "/out/rank3",
          .progress = "/out/rank3/progress",
          .strategy = "unprotected",
          .block = 4,
          .seed = 7,
          .verbsShim = "/lib/shim.so"};
}

TEST(VariablesTest, AProcessKnowsItsPlaceAndItsNetwork) {
  const auto environment = environmentOf(variablesOf(place(), network()));
  const std::map<std::string, std::string> expected{
      {"FAULTLINE_RANK", "3"},
      {"FAULTLINE_RANKS", "4"},
      {"FAULTLINE_LOCAL_RANK", "1"},
      {"FAULTLINE_LOCAL_RANKS", "2"},
      {"FAULTLINE_NODE", "2"},
      {"FAULTLINE_NODES", "3"},
      {"FAULTLINE_GROUP_RANK", "1"},
      {"FAULTLINE_GROUPS", "2"},
      {"FAULTLINE_RAILS", "2"},
      {"FAULTLINE_MASTER_ADDRESS", "10.0.0.2"},
      {"FAULTLINE_ADDRESS", "10.0.0.3"},
      {"FAULTLINE_ADDRESSES", "10.0.0.1,10.0.0.2,10.0.0.3"},
      {"FAULTLINE_ADDRESS_1", "10.0.0.2"},
      {"FAULTLINE_RAIL_1_ADDRESS_0", "10.2.0.1"},
      {"FAULTLINE_INTERFACE", "mgmt"},
      {"FAULTLINE_INTERFACES", "rail0,rail1"},
      {"FAULTLINE_OUTPUT", "/out/rank3"},
      {"FAULTLINE_PROGRESS", "/out/rank3/progress"},
      {"FAULTLINE_STRATEGY", "unprotected"},
      {"FAULTLINE_BLOCK", "4"},
      {"FAULTLINE_SEED", "7"},
      {"FAULTLINE_VERBS_SHIM", "/lib/shim.so"},
      {"RANK", "3"},
      {"WORLD_SIZE", "4"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "1"},
      {"MASTER_ADDR", "10.0.0.2"},
      {"MASTER_PORT", "29500"}};
  EXPECT_THAT(environment, testing::IsSupersetOf(expected));
}

TEST(VariablesTest, TheProcessesOfARankAreToldByTheirEnvironment) {
  const auto environment = environmentOf(variablesOf(place(), network()));
  EXPECT_EQ(rankEntry(3), std::string(kRankVariable) + "=" + environment.at(kRankVariable));
}

TEST(VariablesTest, TheNamesThatAreCheckedAreThoseThatThereAre) {
  const auto variables = variablesOf(place(), network());
  std::vector<std::string> names = variableNames(3, 2);
  std::ranges::sort(names);
  std::vector<std::string> there;
  for (const auto& [name, value] : variables) there.push_back(name);
  EXPECT_EQ(names, there);
}

TEST(VariablesTest, TheTableForPeopleHasAllOfThem) {
  const std::string page = describeVariables();
  for (const std::string& name : variableNames(0, 0)) {
    EXPECT_NE(page.find("  " + name + " "), std::string::npos) << name;
  }
}

TEST(ExpandTest, ReplacesPlaceholdersAndLeavesOtherBracesAlone) {
  const std::map<std::string, std::string> variables{{"rank", "3"}, {"address_1", "10.0.0.2"}};
  const auto expanded = [&](std::string_view text) { return *expand(text, variables); };
  EXPECT_EQ(expanded("--rank={rank} {address_1}:{rank}"), "--rank=3 10.0.0.2:3");
  EXPECT_EQ(expanded("{{rank}}"), "{rank}");
  EXPECT_EQ(expanded("a {{rank} b"), "a {3 b");
  EXPECT_EQ(expanded(R"({"a":{"b":1}})"), R"({"a":{"b":1}})");
  EXPECT_EQ(expanded("{print $1} ${HOME} {} {A} {"), "{print $1} ${HOME} {} {A} {");
  EXPECT_EQ(expanded("{{{rank}}}"), "{{rank}}");
}

TEST(ExpandTest, VariablesOfAShellAreNoPlaceholders) {
  const std::map<std::string, std::string> variables{{"node", "1"}, {"master_port", "29500"}};
  const auto expanded = [&](std::string_view text) { return *expand(text, variables); };
  for (const char* text :
       {"${node}", "$node", "${master_port:-x}", "${master_port}", "\\${node}", "$${node}",
        "${#node}", "${unknown}", "for node in a b; do echo \"on ${node}\"; done"}) {
    EXPECT_EQ(expanded(text), text);
  }
  EXPECT_EQ(expanded("{node} ${node} {node}"), "1 ${node} 1");
  EXPECT_EQ(expanded("{node}${node}"), "1${node}");
  EXPECT_EQ(expanded("$ {node} $({node})"), "$ 1 $(1)");
  EXPECT_EQ(expanded("${{node}}"), "${node}") << "as it was written before ${node} was left alone";
}

TEST(ExpandTest, AShimThatWasNotBuiltIsRefusedWhereItIsWanted) {
  EXPECT_EQ(*expand("LD_PRELOAD={verbs_shim}", {{"verbs_shim", "/lib/shim.so"}}),
            "LD_PRELOAD=/lib/shim.so");
  EXPECT_TRUE(expand("{rank}", {{"rank", "3"}, {"verbs_shim", ""}}).ok());
  const auto expanded = expand("LD_PRELOAD={verbs_shim}", {{"verbs_shim", ""}});
  EXPECT_EQ(expanded.status().code(), Code::kUnavailable);
  EXPECT_THAT(expanded.status().message(), testing::HasSubstr("libibverbs-dev"));
}

TEST(ExpandTest, AnUnknownPlaceholderIsAMistakeWithAHint) {
  const auto expanded = expand("--rank {rnak}", {{"rank", "3"}});
  ASSERT_FALSE(expanded.ok());
  EXPECT_THAT(expanded.status().message(), testing::HasSubstr("'{rnak}'"));
  EXPECT_THAT(expanded.status().message(), testing::HasSubstr("did you mean 'rank'"));
  EXPECT_THAT(expanded.status().message(), testing::HasSubstr("'{{rnak}}'"));
}

// A command may run NCCL with the plugin, which warns of variables that it does not know.
TEST(VariablesTest, NoneIsTakenForAnOptionOfThePlugin) {
  std::vector<std::string> names;
  for (const auto& [name, value] : environmentOf(variablesOf(place(), network()))) {
    names.push_back(name);
  }
  ASSERT_GT(names.size(), 20U);
  EXPECT_THAT(nccl::likelyMistakes(names), testing::IsEmpty());
}

}  // namespace
}  // namespace faultline::command
