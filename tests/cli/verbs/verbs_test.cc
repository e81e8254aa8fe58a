#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using testing::Ran;
using testing::runFaultline;
using ::testing::StartsWith;
using testing::TemporaryFolder;
using Json = nlohmann::json;

const std::string kQuickstart = std::string(FAULTLINE_SOURCE_DIR) + "/scenarios/quickstart.yaml";

/// The program ended with `exit`, and everything it said went to the right place.
void expectData(const Ran& ran, int exit) {
  EXPECT_EQ(ran.exit, exit) << ran.out << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, Not(HasSubstr("\033"))) << "no colour when not a terminal";
}

/// The same of validate, which says on stderr what a scenario without mistakes needs.
void expectValidated(Ran ran, int exit, const std::string& needs) {
  EXPECT_THAT(ran.err, needs.empty()
                           ? ::testing::Matcher<std::string>("")
                           : ::testing::Matcher<std::string>(StartsWith(needs + ": needs about ")));
  ran.err.clear();
  expectData(ran, exit);
}

void expectUsageError(const Ran& ran, const std::string& says) {
  EXPECT_EQ(ran.exit, 2) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr(says));
}

TEST(CliTest, HelpNamesTheVerbsAndShowsExamples) {
  const Ran ran = runFaultline({"--help"});
  expectData(ran, 0);
  for (const char* text : {"validate", "list", "describe", "examples:", "exit codes:"}) {
    EXPECT_THAT(ran.out, HasSubstr(text));
  }
  for (const char* verb : {"validate", "list", "describe"}) {
    const Ran help = runFaultline({verb, "--help"});
    expectData(help, 0);
    EXPECT_THAT(help.out, HasSubstr("--json"));
  }
}

TEST(CliTest, VersionSaysVersionAndCommit) {
  const Ran ran = runFaultline({"--version"});
  expectData(ran, 0);
  EXPECT_THAT(ran.out, MatchesRegex("faultline [0-9.]+ \\(([0-9a-f]+(-dirty)?|unknown)\\)\n"));
  const Ran json = runFaultline({"--version", "--json"});
  expectData(json, 0);
  EXPECT_EQ(Json::parse(json.out)["name"], "faultline");
}

TEST(RunTest, ADryRunSaysWhatWouldBeRun) {
  const Ran text = runFaultline({"run", "--dry-run", kQuickstart});
  expectData(text, 0);
  EXPECT_THAT(text.out, HasSubstr("fault 0: port_down"));
  EXPECT_THAT(text.out, HasSubstr("\ntakes: about "));
  const Ran json = runFaultline({"run", "--dry-run", "--json", kQuickstart});
  expectData(json, 0);
  const Json plans = Json::parse(json.out);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0]["runs"].size(), 9u);
  EXPECT_EQ(plans[0]["scenario"]["name"], "quickstart");
  const double likely = plans[0]["time"]["likely_s"];
  EXPECT_GT(likely, 9 * 60 * 0.06) << "nine runs of sixty iterations, each bound by its rails";
  EXPECT_LE(likely, plans[0]["time"]["at_most_s"].get<double>());
}

TEST(RunTest, ADryRunListsTheFaultsThatAProcessAndASequenceMake) {
  const std::string folder = FAULTLINE_SOURCE_DIR "/scenarios/";
  const Ran process = runFaultline(
      {"run", "--dry-run", folder + "fault-process.yaml", "--set",
       "fault_processes=[{kinds: [port_down], mtbf: 2h, mttr: 30min, nodes: 1, rails: 2, for: 5s, "
       "accelerate: 3600, failures: {distribution: constant}, repairs: {distribution: "
       "constant}}]"});
  expectData(process, 0);
  EXPECT_THAT(process.out, HasSubstr("fault process: each of 1 NICs fails every 2h (constant)"));
  EXPECT_THAT(process.out, HasSubstr("3600 times faster, 1h in 1s"));
  EXPECT_THAT(process.out,
              HasSubstr("fault 0: port_down how=carrier, node 1, rail 2, at 2s for 500ms, at "
                        "4500ms for 500ms\n"));
  const Ran sequence = runFaultline({"run", "--dry-run", folder + "fault-sequence.yaml"});
  expectData(sequence, 0);
  EXPECT_THAT(sequence.out, HasSubstr("node 2, rail 1, 200ms after the recovery of fault 0"));
}

TEST(RunTest, StrategiesAreGivenWithOrBeforeTheFile) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", "--strategy", "fault_free", "--dry-run", kQuickstart},
        {"run", "--strategy", "fault_free", kQuickstart, "--dry-run"},
        {"run", kQuickstart, "--strategy", "fault_free", "--dry-run"}}) {
    const Ran ran = runFaultline(arguments);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("run 3: block 3, fault_free"));
  }
  const Ran two = runFaultline(
      {"run", "--dry-run", "--strategy", "fault_free,hot_repair", "--repeat", "1", kQuickstart});
  EXPECT_THAT(two.out, AllOf(HasSubstr("run 2: "), Not(HasSubstr("fail_stop ("))));
}

TEST(RunTest, BlocksAreNotHeldAgainstEachOtherWhereStrategyLeavesOutTheirReference) {
  const std::string file =
      std::string(FAULTLINE_SOURCE_DIR) + "/scenarios/nightly/training-zero.yaml";
  const std::string told = "whether the machine changed is not checked";
  EXPECT_THAT(runFaultline({"run", "--dry-run", "--strategy", "hot_repair", file}).err,
              HasSubstr(told));
  EXPECT_THAT(runFaultline({"run", "--dry-run", "--strategy", "fault_free,hot_repair", file}).err,
              Not(HasSubstr(told)));
}

TEST(RunTest, RandomDataNeedTheReferenceAlsoWithStrategy) {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("random.yaml",
                   "version: 1\nname: n\nworkload: {kind: training, gradient: {data: random}}\n"
                   "strategies: [fault_free, armed]\nexpect: [digest_matches == true]\n");
  EXPECT_EQ(runFaultline({"run", "--dry-run", file}).exit, 0);
  expectUsageError(runFaultline({"run", "--dry-run", "--strategy", "armed", file}),
                   "name fault_free too");
}

TEST(CliTest, NoMessageRepeatsAHugeArgument) {
  const std::string huge(100'000, 'x');
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{huge},
        {"run", huge},
        {"report", huge},
        {"run", "--" + huge},
        {"run", "--set", huge},
        {"run", "a.yaml", "--set", huge},
        {"run", "a.yaml", "--seed", huge},
        {"validate", "a.yaml", "--set", "x=" + huge},
        {"describe", huge},
        {"list", huge},
        {"schedule", "show", "--algorithm", huge, "--ranks", "4"},
        {"schedule", "show", "--algorithm", "ring", "--ranks", huge},
        {"inject", huge},
        {"init", "--fault", huge},
        {"compare", huge, huge},
        {"history", "add", huge, huge},
        {"help", huge}}) {
    const Ran ran = runFaultline(words);
    EXPECT_NE(ran.exit, 0);
    EXPECT_NE(ran.out + ran.err, "") << words.front();
    EXPECT_LT(ran.out.size() + ran.err.size(), 10'000u) << words[0] << ' ' << words.back()[0];
  }
}

TEST(CliTest, OutputThatCannotBeWrittenIsNoSuccess) {
  const auto shell = [](const std::string& command) {
    return testing::runProgram("/bin/sh",
                               {"-c", command, std::string(FAULTLINE_BINARY_DIR) + "/faultline"});
  };
  const Ran full = shell("\"$0\" list > /dev/full");
  EXPECT_EQ(full.exit, 3);
  EXPECT_THAT(full.err, HasSubstr("standard output"));
  const Ran limited = shell("cd $(mktemp -d) && ulimit -f 1 && \"$0\" describe scenario > out");
  EXPECT_EQ(limited.exit, 3);
  EXPECT_THAT(limited.err, HasSubstr("ulimit -f"));
  EXPECT_EQ(limited.err.find("disk"), std::string::npos) << limited.err;
  const Ran left = shell("{ \"$0\" describe scenario; echo $? >&2; } | head -1");
  EXPECT_EQ(left.err, "0\n") << "its reader had enough";
}

TEST(CliTest, TheLaboratoryRefusesHostsThatThereAreNotBeforeItBoots) {
  for (const std::string on : {"7", "2", "0,2", "-1"}) {
    const Ran ran = runFaultline({"lab", "--on=" + on, "--", "true"});
    expectUsageError(ran, "possible are 0 to 1");
    EXPECT_THAT(ran.err, Not(HasSubstr("booting"))) << on;
  }
}

TEST(CliTest, TheLaboratoryRefusesAFolderThatIsNotThereBeforeItBoots) {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "text");
  const Ran missing =
      runFaultline({"lab", "--share", folder.path() / "none", "--", "true"}, folder.path());
  expectUsageError(missing, "/none: No such file or directory");
  EXPECT_THAT(missing.err, AllOf(HasSubstr("--share"), Not(HasSubstr("booting"))));
  const Ran other = runFaultline({"lab", "--share", "file", "--", "true"}, folder.path());
  expectUsageError(other, file + " is no folder");
}

TEST(CliTest, UsageMistakesGoToStderrAndExitWith2) {
  expectUsageError(runFaultline({}), "A verb is required");
  expectUsageError(runFaultline({"frobnicate"}), "there is no verb 'frobnicate'; known are");
  expectUsageError(runFaultline({"vlidate", "x"}), "did you mean 'validate'?");
  expectUsageError(runFaultline({"--colour"}), "--colour");
  expectUsageError(runFaultline({"validate"}), "FILE is required");
  expectUsageError(runFaultline({"list", "weather"}), "weather");
  expectUsageError(runFaultline({"describe"}), "NAME is required");
  expectUsageError(runFaultline({"describe", "port_don"}), "did you mean 'port_down'?");
  expectUsageError(runFaultline({"describe", "zzzzzzzz"}), "'faultline list' shows what there is");
}

TEST(ValidateTest, AGoodFileIsOk) {
  const Ran ran = runFaultline({"validate", kQuickstart});
  expectValidated(ran, 0, "quickstart");
  EXPECT_EQ(ran.out, kQuickstart + ": ok\n");
}

TEST(ValidateTest, MistakesAreDataWithTheirPlace) {
  const TemporaryFolder folder;
  folder.write("bad.yaml",
               "version: 1\nname: n\nworkload: {kind: training, iteratons: 5}\n"
               "strategies: [armed]\nseed: x\n");
  const Ran ran = runFaultline({"validate", "bad.yaml", kQuickstart}, folder.path());
  expectValidated(ran, 2, "quickstart");
  EXPECT_EQ(ran.out,
            "bad.yaml:3:28: unknown key 'iteratons' in 'workload' (did you mean 'iterations'?)\n"
            "bad.yaml:5:7: seed: 'x' is not a whole number\n" +
                kQuickstart + ": ok\n");
}

TEST(ValidateTest, JsonHoldsMistakesOrTheScenario) {
  const TemporaryFolder folder;
  folder.write("bad.yaml", "version: 1\n");
  const Ran ran = runFaultline({"validate", "--json", "bad.yaml", kQuickstart}, folder.path());
  expectData(ran, 2);
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["files"][0]["ok"], false);
  EXPECT_EQ(json["files"][0]["mistakes"].size(), 3u);
  EXPECT_EQ(json["files"][0]["mistakes"][0]["line"], 1);
  EXPECT_EQ(json["files"][0]["scenario"], nullptr);
  EXPECT_EQ(json["files"][1]["scenario"]["name"], "quickstart");
  EXPECT_EQ(json["files"][1]["scenario"]["workload"]["warmup_iterations"], 5);
}

TEST(ValidateTest, OverridesAreCheckedToo) {
  expectValidated(
      runFaultline({"validate", "--set", "faults.0.duration=2s", "--set", "seed=3", kQuickstart}),
      0, "quickstart");
  const Ran ran = runFaultline({"validate", kQuickstart, "--set", "faults.0.duration=2"});
  expectData(ran, 2);
  EXPECT_EQ(ran.out, kQuickstart +
                         ": --set faults.0.duration=2: duration: '2' has no unit: a duration needs "
                         "one of ns, us, ms, s, min, h, like 50ms\n");
}

TEST(ValidateTest, MissingFilesAreMistakes) {
  const Ran ran = runFaultline({"validate", "/nowhere.yaml"});
  expectData(ran, 2);
  EXPECT_THAT(ran.out, StartsWith("/nowhere.yaml: cannot read the scenario: No such file"));
}

TEST(ValidateTest, PrintsTheSchemaForEditors) {
  const Ran ran = runFaultline({"validate", "--schema"});
  expectData(ran, 0);
  EXPECT_EQ(Json::parse(ran.out)["title"], "Faultline scenario");
  EXPECT_EQ(runFaultline({"describe", "scenario", "--json"}).out, ran.out);
}

TEST(ListTest, ListsEverythingOrOneKind) {
  const Ran all = runFaultline({"list"}, FAULTLINE_SOURCE_DIR);
  expectData(all, 0);
  for (const char* name : {"quickstart", "port_down", "hot_repair", "training", "ring"}) {
    EXPECT_THAT(all.out, HasSubstr(name));
  }
  const Ran faults = runFaultline({"list", "faults"});
  expectData(faults, 0);
  EXPECT_THAT(faults.out, HasSubstr("blackhole"));
  EXPECT_THAT(faults.out, Not(HasSubstr("hot_repair")));
  const Json json = Json::parse(runFaultline({"list", "--json"}).out);
  EXPECT_EQ(json.size(), 10u);
  EXPECT_EQ(json["faults"][0]["name"], "port_down");
  EXPECT_FALSE(json["faults"][0].contains("unproven"));
}

TEST(ListTest, WhatNobodyHasSeenWorkIsSaid) {
  int unproven = 0;
  const Json json = Json::parse(runFaultline({"list", "faults", "--json"}).out);
  for (const auto& fault : json["faults"]) {
    const std::string name = fault["name"];
    if (name.starts_with("rdma_") || name == "qp_error" || name == "qp_rate") {
      EXPECT_NE(fault.value("unproven", ""), "") << name;
    }
    unproven += fault.contains("unproven") ? 1 : 0;
  }
  EXPECT_GE(unproven, 10);
  EXPECT_THAT(runFaultline({"list", "faults"}).out, HasSubstr("Unproven: on adapters"));
}

TEST(ListTest, ABrokenScenarioIsListedAsSuch) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "scenarios");
  folder.write("scenarios/broken.yaml", "version: 2\n");
  const Ran ran = runFaultline({"list", "scenarios"}, folder.path());
  expectData(ran, 0);
  EXPECT_THAT(ran.out, HasSubstr("has mistakes"));
}

TEST(DescribeTest, HasAPageForEverythingThatIsListed) {
  const Json all = Json::parse(runFaultline({"list", "--json"}, FAULTLINE_SOURCE_DIR).out);
  for (const auto& [category, items] : all.items()) {
    EXPECT_FALSE(items.empty()) << category;
    // Metrics are many, and made from one table by one function.
    const std::size_t step = category == "metrics" ? 10 : 1;
    for (std::size_t i = 0; i < items.size(); i += step) {
      const auto& item = items[i];
      const std::string name = item["name"];
      const Ran page = runFaultline({"describe", name}, FAULTLINE_SOURCE_DIR);
      expectData(page, 0);
      EXPECT_THAT(page.out, StartsWith(name + "\n"));
      std::istringstream lines(page.out);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
      const Ran json = runFaultline({"describe", name, "--json"}, FAULTLINE_SOURCE_DIR);
      expectData(json, 0);
      EXPECT_EQ(Json::parse(json.out)["name"], name);
    }
  }
}

TEST(DescribeTest, AWorkloadHasOnlyTheKeysOfItsKind) {
  const auto keysOf = [](const char* kind) {
    std::vector<std::string> keys;
    const Json page = Json::parse(runFaultline({"describe", kind, "--json"}).out);
    for (const auto& [key, schema] : page["parameters"].items()) keys.push_back(key);
    std::ranges::sort(keys);
    return keys;
  };
  EXPECT_EQ(keysOf("command"), (std::vector<std::string>{"command", "kind"}));
  EXPECT_EQ(keysOf("collective"), (std::vector<std::string>{"collective", "iterations", "kind",
                                                            "time", "warmup_iterations"}));
  EXPECT_EQ(keysOf("inference"),
            (std::vector<std::string>{"device", "inference", "kind", "model", "parallel", "scale",
                                      "warmup_iterations"}));
  const std::string page = runFaultline({"describe", "inference"}).out;
  EXPECT_THAT(page, HasSubstr("inference.qps ("));
  EXPECT_THAT(page, Not(HasSubstr("gradient (")));
  EXPECT_THAT(runFaultline({"describe", "training"}).out, HasSubstr("gradient.buckets ("));
}

TEST(DescribeTest, PartsOfTheLanguageHavePages) {
  const Ran group = runFaultline({"describe", "rail_group"});
  expectData(group, 0);
  EXPECT_THAT(group.out, HasSubstr("as when its switch dies"));
  const Ran processes = runFaultline({"describe", "fault_processes"});
  expectData(processes, 0);
  EXPECT_THAT(processes.out, HasSubstr("shortest ("));
}

TEST(DescribeTest, AModelSaysWhatFollowsFromIt) {
  const Ran page = runFaultline({"describe", "llama3.1-8b"});
  expectData(page, 0);
  EXPECT_THAT(page.out, HasSubstr("8.03 billion parameters"));
  EXPECT_THAT(page.out, HasSubstr("16.06 GB"));  // of two bytes
  const Json json = Json::parse(runFaultline({"describe", "llama3.1-8b", "--json"}).out);
  EXPECT_EQ(json["parameters"], 8'030'261'248);
  EXPECT_EQ(json["backward_flops_per_token"], 2 * json["forward_flops_per_token"].get<double>());
}

TEST(DescribeTest, ParametersHaveUnitsAndDefaults) {
  const Json json = Json::parse(runFaultline({"describe", "fail_stop", "--json"}).out);
  const Json& watchdog = json["parameters"][0];
  EXPECT_EQ(watchdog["name"], "watchdog");
  EXPECT_EQ(watchdog["type"], "duration");
  EXPECT_EQ(watchdog["default"], "600ms");
  EXPECT_EQ(watchdog["minimum"], "1ms");
}

}  // namespace
}  // namespace faultline
