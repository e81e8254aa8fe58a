#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/pseudo_terminal.h"
#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Ran;
using testing::runFaultline;
using ::testing::StartsWith;
using testing::TemporaryFolder;

const std::string kTerminalProgram = std::string(FAULTLINE_BINARY_DIR) + "/faultline";

constexpr const char* kTiny =
    "version: 1\nname: tiny\ncluster: {nodes: 2, rails: 1, rail_rate: 100Mbit}\n"
    "workload: {kind: training, iterations: 5, warmup_iterations: 1, compute: 5ms, gradient: "
    "{size: 64KiB, buckets: 1}}\nstrategies: [fault_free, armed]\n";

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

class RunOnTerminalTest : public ::testing::Test {
 protected:
  Ran run(const std::vector<std::pair<std::string, std::string>>& variables,
          const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments{"run", "--out", folder_.path() / "out"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.push_back(folder_.write("tiny.yaml", kTiny));
    return testing::runOnTerminal(kTerminalProgram, arguments, variables);
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(RunOnTerminalTest, OneLineIsWrittenOverAndSaysHowMuchIsLeft) {
  const Ran ran = run({{"TERM", "xterm"}});
  if (ran.exit == 3) GTEST_SKIP() << "no namespaces here: " << ran.out;
  ASSERT_EQ(ran.exit, 0) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("\033[1mtiny")) << "and there is colour";
  EXPECT_THAT(ran.out, HasSubstr("\r[1/2] block 1, "));
  EXPECT_THAT(ran.out, AllOf(HasSubstr("about "), HasSubstr(" left, "), HasSubstr(" so far; [")));
  EXPECT_THAT(ran.out, Not(HasSubstr(" ...\r\n"))) << "the live line says that a run begins";
}

TEST_F(RunOnTerminalTest, NoColorLeavesTheLineAndNoEscape) {
  const Ran ran = run({{"TERM", "xterm"}, {"NO_COLOR", "1"}});
  if (ran.exit == 3) GTEST_SKIP() << "no namespaces here: " << ran.out;
  EXPECT_THAT(ran.out, Not(HasSubstr("\033")));
  EXPECT_THAT(ran.out, HasSubstr(" so far; ["));
}

TEST_F(RunOnTerminalTest, ADumbTerminalGetsPlainLines) {
  const Ran ran = run({{"TERM", "dumb"}});
  if (ran.exit == 3) GTEST_SKIP() << "no namespaces here: " << ran.out;
  EXPECT_THAT(ran.out, AllOf(Not(HasSubstr("\033")), Not(HasSubstr(" so far; ["))));
  EXPECT_THAT(ran.out, HasSubstr("[1/2] block 1, "));
  EXPECT_THAT(ran.out, HasSubstr(" ...\r\n"));
}

TEST_F(RunOnTerminalTest, QuietIsTheFolderAndASentence) {
  const Ran ran = run({{"TERM", "xterm"}}, {"--quiet"});
  if (ran.exit == 3) GTEST_SKIP() << "no namespaces here: " << ran.out;
  const std::vector<std::string> lines = linesOf(ran.out);
  ASSERT_EQ(lines.size(), 2u) << ran.out;
  EXPECT_THAT(lines[0], EndsWith("/out\r"));
  EXPECT_THAT(lines[1], StartsWith("No fault was injected"));
}

TEST_F(RunOnTerminalTest, ABudgetThatIsUsedUpLeavesOneBlockAndSaysSo) {
  const Ran ran = run({{"TERM", "dumb"}}, {"--repeat", "500", "--budget", "1ms"});
  if (ran.exit == 3) GTEST_SKIP() << "no namespaces here: " << ran.out;
  EXPECT_EQ(ran.exit, 0) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("--budget: 1 of 500 blocks were made"));
  EXPECT_THAT(ran.out, HasSubstr("[2/1000] block 1"));
  EXPECT_THAT(ran.out, Not(HasSubstr("block 2")));
}

TEST_F(RunOnTerminalTest, FailFastMakesNoRunAfterAWrongElement) {
  const Ran ran =
      run({{"TERM", "dumb"}}, {"--fail-fast", "--repeat", "200", "--set",
                               "strategies=[{fault_free: {corrupt_one_element: true}}, armed]",
                               "--set", "workload.gradient.data=integers"});
  if (ran.exit == 3) GTEST_SKIP() << "no namespaces here: " << ran.out;
  EXPECT_EQ(ran.exit, 1) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("--fail-fast: "));
  EXPECT_THAT(ran.out, HasSubstr("WRONG RESULTS by fault_free"));
  EXPECT_THAT(ran.out, Not(HasSubstr("block 2")));
}

TEST(HelpTest, EachVerbHasItsOwnExamplesAndExitCodes) {
  for (const std::string verb :
       {"run",           "validate",      "list",      "describe", "schedule", "schedule verify",
        "schedule cost", "schedule show", "report",    "compare",  "history",  "history add",
        "history trend", "doctor",        "inject",    "restore",  "status",   "faultd",
        "lab",           "init",          "completion"}) {
    std::vector<std::string> words;
    std::istringstream all(verb);
    for (std::string word; all >> word;) words.push_back(word);
    std::vector<std::string> asking{"help"};
    asking.insert(asking.end(), words.begin(), words.end());
    words.emplace_back("--help");
    const Ran help = runFaultline(words);
    EXPECT_EQ(help.exit, 0) << verb;
    EXPECT_EQ(runFaultline(asking).out, help.out) << verb;
    const std::size_t at = help.out.find("\nexamples:\n");
    ASSERT_NE(at, std::string::npos) << verb;
    EXPECT_THAT(help.out.substr(at), HasSubstr("exit codes: ")) << verb;
    int examples = 0;
    for (const std::string& line : linesOf(help.out.substr(at))) {
      if (!line.starts_with("  faultline ") && !line.starts_with("  source")) continue;
      ++examples;
      EXPECT_THAT(line, HasSubstr("faultline " + verb)) << verb;
    }
    EXPECT_GE(examples, 1) << verb;
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(help.out.front()))) << verb;
  }
}

TEST(HelpTest, VersionAndHelpAreWordsToo) {
  const std::string version = runFaultline({"--version"}).out;
  EXPECT_EQ(runFaultline({"version"}).out, version);
  EXPECT_EQ(runFaultline({"-V"}).out, version);
  EXPECT_EQ(runFaultline({"version", "--json"}).out, runFaultline({"--version", "--json"}).out);
  EXPECT_EQ(runFaultline({"help"}).out, runFaultline({"--help"}).out);
}

TEST(DidYouMeanTest, EverywhereWhereANameIsExpected) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> kMistakes{
      {{"vlidate"}, "'validate'"},
      {{"hlep"}, "'help'"},
      {{"help", "rnu"}, "'run'"},
      {{"history", "trnd"}, "'trend'"},
      {{"schedule", "csot"}, "'cost'"},
      {{"run", "--repeet", "3", "x"}, "'--repeat'"},
      {{"history", "trend", "--night", "3", "x"}, "'--nights'"},
      {{"list", "fualts"}, "'faults'"},
      {{"list", "fault"}, "'faults'"},
      {{"describe", "port_don"}, "'port_down'"},
      {{"describe", "failover_pause"}, "'failover_pause_ms'"},
      {{"describe", "failver_pause_ms"}, "'failover_pause_ms'"},
      {{"describe", "failver_pause_ms.p50"}, "'failover_pause_ms.p50'"},
      {{"describe", "wathdog"}, "'watchdog'"},
      {{"run", "--strategy", "hot_repar", "QUICKSTART"}, "'hot_repair'"},
      {{"schedule", "verify", "--algorithm", "rng", "--ranks", "4"}, "'ring'"},
      {{"schedule", "cost", "--algorithm", "ring", "--ranks", "4", "--dtype", "f23"}, "'f32'"},
      {{"schedule", "cost", "--algorithm", "ring", "--ranks", "4", "--port-model", "fluidd"},
       "'fluid'"},
      {{"schedule", "show", "--algorithm", "ring", "--ranks", "4", "--format", "mscl-xml"},
       "'msccl-xml'"},
      {{"inject", "post_error", "--target", "pid=1", "--for", "1s", "--param", "budgt=1"},
       "'budget'"},
      {{"inject", "post_error", "--target", "pd=1", "--for", "1s"}, "'pid'"},
      {{"inject", "rdma_port_down", "--target", "dv=1", "--for", "1s"}, "'dev'"},
      {{"run", "--set", "strategies.hot_repar.as=x", "QUICKSTART"}, "'hot_repair'"},
      {{"rnu", "--help"}, "'run'"},
      {{"describe", "hot_repair.overhead"}, "'overhead_pct'"},
      {{"describe", "al_reduce"}, "'all_reduce'"},
      {{"inject", "port_dwn"}, "'port_down'"},
      {{"init", "--fault", "port_dwn"}, "'port_down'"},
      {{"init", "--gate", "hot_repair.failover.count >= 1"}, "'hot_repair.failovers.count'"},
      {{"init", "--workload", "trainin"}, "'training'"}};
  for (const auto& [given, meant] : kMistakes) {
    std::vector<std::string> words = given;
    std::ranges::replace(words, "QUICKSTART", FAULTLINE_SOURCE_DIR "/scenarios/quickstart.yaml");
    const Ran ran = runFaultline(words);
    EXPECT_EQ(ran.exit, 2) << words.back();
    EXPECT_EQ(ran.out, "") << words.back();
    EXPECT_THAT(ran.err, HasSubstr("did you mean " + meant)) << words.back();
  }
}

TEST(DidYouMeanTest, AFileBesideTheOneThatIsNotThere) {
  const TemporaryFolder folder;
  folder.write("hang.yaml", kTiny);
  for (const std::string name : {"hang.yml", "hng.yaml"}) {
    EXPECT_THAT(runFaultline({"validate", name}, folder.path()).out,
                HasSubstr("did you mean 'hang.yaml'?"));
    EXPECT_THAT(runFaultline({"run", folder.path() / name}).err,
                HasSubstr("did you mean '" + std::string(folder.path() / "hang.yaml") + "'?"));
  }
  EXPECT_THAT(runFaultline({"validate", "other.yaml"}, folder.path()).out,
              Not(HasSubstr("did you mean")));
}

TEST(DidYouMeanTest, EachNameOnceInAList) {
  const TemporaryFolder folder;
  folder.write("x.yaml",
               "version: 1\nname: x\nworkload: {kind: training, iterations: 10}\n"
               "strategies: [fault_free, hot_repair, hot_repar]\nexpect: [foo.status == ok]\n");
  const std::string told = runFaultline({"validate", "x.yaml"}, folder.path()).out;
  const std::size_t at = told.find("there is no strategy 'foo'");
  ASSERT_NE(at, std::string::npos) << told;
  const std::size_t first = told.find(" hot_repair,", at);
  ASSERT_NE(first, std::string::npos) << told;
  EXPECT_EQ(told.find(" hot_repair,", first + 1), std::string::npos) << told;
}

TEST(DescribeTest, KnowsOptionsOfStrategiesAndParametersOfFaults) {
  EXPECT_THAT(runFaultline({"describe", "watchdog"}).out, HasSubstr("of the strategy fail_stop"));
  EXPECT_THAT(runFaultline({"describe", "budget"}).out, HasSubstr("of the fault post_error"));
}

TEST(InjectTest, SaysWhatIsReallyMissing) {
  EXPECT_THAT(runFaultline({"inject", "path_cut"}).err, HasSubstr("not by hand"));
  EXPECT_THAT(runFaultline({"inject", "port_down"}).err,
              HasSubstr("needs --target and --for, like --target eth1 --for 2s"));
  EXPECT_THAT(runFaultline({"inject", "post_error"}).err, HasSubstr("needs --target and --for"));
  EXPECT_THAT(runFaultline({"inject", "post_error", "--for", "2s"}).err,
              AllOf(HasSubstr("needs --target,"), Not(HasSubstr("and --for"))));
  EXPECT_THAT(runFaultline({"inject"}).err, HasSubstr("which fault?"));
}

TEST(ListTest, WithoutArgumentFitsAScreen) {
  const std::vector<std::string> lines = linesOf(runFaultline({"list"}, FAULTLINE_SOURCE_DIR).out);
  EXPECT_LE(lines.size(), 50u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(lines.front(), AllOf(StartsWith("scenarios ("), HasSubstr("start here: ")));
  // No name breaks the column of another.
  for (const char* kind : {"scenarios", "faults", "metrics", "algorithms"}) {
    std::size_t column = 0;
    for (const std::string& line :
         linesOf(runFaultline({"list", kind}, FAULTLINE_SOURCE_DIR).out)) {
      const bool item = line.starts_with("  ") && line.size() > 2 && line[2] != ' ';
      const std::size_t gap = line.find("  ", 2);
      if (!item || gap == std::string::npos) continue;
      const std::size_t text = line.find_first_not_of(' ', gap);
      if (column == 0) column = text;
      EXPECT_EQ(text, column) << line;
    }
  }
}

TEST(DescribeTest, KnowsMetricsKeysOperationsAndClusters) {
  const auto says = [](const std::string& name) { return runFaultline({"describe", name}).out; };
  EXPECT_THAT(says("failovers.count"), HasSubstr("times that traffic left a failed rail"));
  EXPECT_THAT(says("hot_repair.failovers.count"), HasSubstr("<strategy>.failovers.count"));
  EXPECT_THAT(says("failover_pause_ms"), AllOf(HasSubstr(".p50\n"), HasSubstr(".max\n")));
  EXPECT_THAT(says("limits"), HasSubstr("\nlimits.give_up (duration, default 10s"));
  EXPECT_THAT(says("give_up"), HasSubstr("limits.give_up"));
  EXPECT_THAT(says("all_reduce"), HasSubstr("operations: [all_reduce]"));
  EXPECT_THAT(says("netns"), HasSubstr("cluster: {kind: netns}"));
  EXPECT_THAT(says("duration"), AllOf(HasSubstr("of each run"), HasSubstr("whole experiment")))
      << "of a strategy, and of the whole";
}

TEST(DescribeTest, ANameOfTwoThingsIsDescribedTwice) {
  const std::string page = runFaultline({"describe", "optcc"}).out;
  EXPECT_THAT(page, AllOf(HasSubstr("As balance, with OptCC's AllReduce"),
                          HasSubstr("the algorithm of that name:"), HasSubstr("schedule show")));
  EXPECT_THAT(runFaultline({"describe", "optcc", "--json"}).out, HasSubstr("\"also\""));
}

TEST(ValidateTest, EveryMistakeAlsoUnderAWrongKind) {
  const TemporaryFolder folder;
  folder.write("bad.yaml",
               "version: 1\nname: n\n"
               "workload: {kind: training, iterations: 60}\n"
               "strategies: [fault_free, hot_repair, {fail_stp: {watchdg: 3s}}]\n"
               "faults:\n"
               "  - kind: port_dwn\n"
               "    target: {node: 9, rail: 7}\n"
               "    during: {iteration: 200}\n"
               "    duration: 1500\n"
               "    hwo: carrier\n"
               "  - kind: weather\n"
               "    target: {node: 9, rail: 0}\n"
               "    at: 5\n"
               "    duration: 1s\n"
               "expect: [hot_repair.overhead <= 3]\n");
  const std::string out = runFaultline({"validate", "bad.yaml"}, folder.path()).out;
  for (const char* mistake :
       {"4:39: unknown strategy 'fail_stp' (did you mean 'fail_stop'?)", "unknown key 'watchdg'",
        "6:11: kind: 'port_dwn'", "7:20: node: there is no node 9",
        "7:29: rail: there is no rail 7", "8:25: iteration: there is no iteration 200",
        "9:15: duration: '1500' has no unit",
        "10:5: unknown key 'hwo' in 'faults.0' (did you mean 'how'?)", "11:11: kind: 'weather'",
        "12:20: node: there is no node 9", "13:9: at: '5' has no unit",
        "did you mean 'hot_repair.overhead_pct.median'?"}) {
    EXPECT_THAT(out, HasSubstr(mistake));
  }
  EXPECT_EQ(linesOf(out).size(), 12u) << out;
}

TEST(PipeTest, AScenarioCanComeFromAPipe) {
  const TemporaryFolder folder;
  folder.write("tiny.yaml", kTiny);
  const auto shell = [&](const std::string& command) {
    return testing::runProgram("/bin/bash", {"-c", command, kTerminalProgram}, folder.path());
  };
  EXPECT_EQ(shell("cat tiny.yaml | \"$0\" validate -").out, "-: ok\n");
  EXPECT_EQ(shell("cat tiny.yaml | \"$0\" validate /dev/stdin").out, "/dev/stdin: ok\n");
  EXPECT_EQ(shell("\"$0\" validate - < tiny.yaml").out, "-: ok\n");
  EXPECT_THAT(shell("\"$0\" validate <(cat tiny.yaml)").out, EndsWith(": ok\n"));
  EXPECT_THAT(shell("cat tiny.yaml | \"$0\" run --dry-run -").out, HasSubstr("run 2: block 1"));
  const Ran endless = shell("cat /dev/zero | \"$0\" validate -");
  EXPECT_EQ(endless.exit, 2);
  EXPECT_THAT(endless.out, HasSubstr("-: "));
  EXPECT_THAT(shell("\"$0\" validate /dev/zero").out, HasSubstr("device"));
  EXPECT_THAT(shell("\"$0\" validate - <&-").out, HasSubstr("cannot read the scenario"));
}

TEST(InitTest, WritesAFileThatValidatesAndNeverReplacesOne) {
  const TemporaryFolder folder;
  const Ran first =
      runFaultline({"init", "--fault", "throttle", "--out", "mine.yaml"}, folder.path());
  EXPECT_EQ(first.exit, 0) << first.err;
  EXPECT_EQ(first.out, "mine.yaml\n");
  EXPECT_EQ(runFaultline({"validate", "mine.yaml"}, folder.path()).exit, 0);
  const Ran again = runFaultline({"init", "--out", "mine.yaml"}, folder.path());
  EXPECT_EQ(again.exit, 2);
  EXPECT_THAT(again.err, AllOf(HasSubstr("is there already"), HasSubstr("--force")));
  EXPECT_THAT(runFaultline({"run", "--dry-run", "mine.yaml"}, folder.path()).out,
              HasSubstr("fault 0: throttle"));
  EXPECT_EQ(runFaultline({"init", "--out", "mine.yaml", "--force"}, folder.path()).exit, 0);
  EXPECT_THAT(runFaultline({"run", "--dry-run", "mine.yaml"}, folder.path()).out,
              HasSubstr("fault 0: port_down"));
}

TEST(InitTest, FollowsNoLink) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("elsewhere", folder.path() / "mine.yaml");
  for (const bool force : {false, true}) {
    std::vector<std::string> words{"init", "--out", "mine.yaml"};
    if (force) words.emplace_back("--force");
    EXPECT_EQ(runFaultline(words, folder.path()).exit, 2);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "elsewhere"));
    EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "mine.yaml"));
  }
}

TEST(InitTest, WhatItWritesRuns) {
  const TemporaryFolder folder;
  const Ran written =
      runFaultline({"init", "--program", "sleep 2", "--out", "it.yaml"}, folder.path());
  ASSERT_EQ(written.exit, 0) << written.err;
  const Ran ran = runFaultline({"run", "it.yaml"}, folder.path());
  if (ran.exit == 3) GTEST_SKIP() << "no namespaces here: " << ran.err;
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_THAT(linesOf(ran.out).back(),
              StartsWith("the program as it is (unprotected) kept the job"));
}

TEST(InitTest, AsksAgainWhereAnAnswerIsWrong) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "my file.yaml";
  const Ran ran = testing::runOnTerminal(
      kTerminalProgram, {"init"}, {},
      "comand\ncommand\n  \nsleep 2\nport_dwn\nconnection_reset loss\nunprotectd.status == ok\n\n" +
          std::string(folder.path()) + "\n" + file + "\n");
  EXPECT_EQ(ran.exit, 0) << ran.out;
  for (const char* const told :
       {"did you mean 'command'?", "which program?", "did you mean 'port_down'?",
        "did you mean 'unprotected'?", "is there already: name another one"}) {
    EXPECT_THAT(ran.out, HasSubstr(told));
  }
  const Ran planned = runFaultline({"run", "--dry-run", file});
  EXPECT_THAT(planned.out, StartsWith("my-file: "));
  EXPECT_THAT(planned.out,
              AllOf(HasSubstr("fault 0: connection_reset"), HasSubstr("fault 1: loss")));
  EXPECT_THAT(testing::runProgram("/bin/cat", {file}).out, HasSubstr("\"sleep 2\""));
}

TEST(InitTest, OffersOnlyFaultsThatTheScenarioCanMeet) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "c.yaml";
  const Ran ran = testing::runOnTerminal(kTerminalProgram, {"init"}, {},
                                         "collective\nqp_error\nthrottle\n\n" + file + "\n");
  EXPECT_EQ(ran.exit, 0) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("Possible are port_down, "));
  EXPECT_THAT(ran.out, HasSubstr("Not qp_error, post_error, "));
  EXPECT_THAT(ran.out, HasSubstr("qp_error strikes queue pairs"));
  EXPECT_EQ(runFaultline({"validate", file}).exit, 0);
}

TEST(InitTest, WhatIsNotAnsweredWritesNothing) {
  const Ran ran = testing::runOnTerminal(kTerminalProgram, {"init"}, {}, "collective\n\x04");
  EXPECT_EQ(ran.exit, 2) << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("not all was answered"));
  const Ran empty = runFaultline({"init", "--program", ""});
  EXPECT_EQ(empty.exit, 2);
  EXPECT_EQ(empty.out, "");
  EXPECT_THAT(empty.err, HasSubstr("which program?"));
}

TEST(CompletionTest, CompletesVerbsAndTheirOptions) {
  const Ran ran = testing::runProgram(
      "/bin/bash", {"-c",
                    "source <(\"$0\" completion bash); COMP_CWORD=2; COMP_WORDS=(faultline history "
                    "tr); _faultline; echo \"${COMPREPLY[@]}\"; COMP_WORDS=(faultline run --fa); "
                    "_faultline; echo \"${COMPREPLY[@]}\"",
                    kTerminalProgram});
  EXPECT_EQ(ran.out, "trend\n--fail-fast\n") << ran.err;
  EXPECT_EQ(runFaultline({"completion", "fish"}).exit, 2);
}

}  // namespace
}  // namespace faultline
