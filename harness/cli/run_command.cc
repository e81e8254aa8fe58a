#include "harness/cli/run_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "base/text.h"
#include "harness/analysis/analyse.h"
#include "harness/analysis/verdict.h"
#include "harness/baseline/strategy_table.h"
#include "harness/cli/cli.h"
#include "harness/cli/dry_run.h"
#include "harness/cli/estimate_words.h"
#include "harness/cli/output.h"
#include "harness/cli/run_progress.h"
#include "harness/cli/terminal.h"
#include "harness/control/experiment.h"
#include "harness/control/find_rails.h"
#include "harness/control/killed_runs.h"
#include "harness/control/output_folder.h"
#include "harness/control/time_left.h"
#include "harness/launch/privileges.h"
#include "harness/scenario/expectation_check.h"
#include "harness/scenario/reader.h"
#include "reports/collectives_text.h"
#include "reports/renderer.h"
#include "reports/terminal_summary.h"

namespace faultline::cli {
namespace {

constexpr const char* kDefaultFolder = "faultline-out";

struct RunOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::vector<std::string> strategies;
  std::string directory;
  std::optional<int> repeat;
  std::optional<std::uint64_t> seed;
  bool dryRun = false;
  bool keep = false;
  bool force = false;
  bool quiet = false;
  bool failFast = false;
  std::string budget;
  std::string transcript;
  std::string cluster;
  bool json = false;

  Earlier earlier() const { return force ? Earlier::kReplaced : Earlier::kRefused; }
};

int codeOf(const Status& error) {
  return error.code() == Code::kNotRestored ? kExitNotRestored : kExitCannotRun;
}

int codeOf(const reports::ScenarioResult& result) {
  if (result.interrupted) return kExitInterrupted;
  switch (result.verdict) {
    case reports::Verdict::kPass:
      return kExitOk;
    case reports::Verdict::kInvalid:
      return kExitInvalid;
    case reports::Verdict::kFail:
    case reports::Verdict::kError:
      return kExitExpectation;
  }
  return kExitExpectation;
}

/// Leaves only the named strategies, and the expectations that speak of them.
Status selectStrategies(scenario::Scenario& scenario, const std::vector<std::string>& names) {
  if (names.empty()) return okStatus();
  for (const std::string& name : names) {
    if (scenario.find(name) != nullptr) continue;
    std::vector<std::string_view> known;
    for (const scenario::Strategy& strategy : scenario.strategies) known.push_back(strategy.name);
    return errorf(Code::kInvalidArgument, "--strategy {}: the scenario has no such strategy{}",
                  name, suggestion(name, known));
  }
  const auto chosen = [&](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  const bool pairs = scenario.secondFaultFree() != nullptr;
  std::erase_if(scenario.strategies, [&](const auto& strategy) { return !chosen(strategy.name); });
  if (pairs && scenario.secondFaultFree() == nullptr) {
    std::cerr << "noise is not checked, as --strategy leaves out the second row of "
              << baseline::kReferenceRow << '\n';
  }
  const bool reference = scenario.find(std::string(baseline::kReferenceRow)) != nullptr;
  if (!reference && scenario.noise.acrossBlocks) {
    scenario.noise.acrossBlocks = false;
    std::cerr << "whether the machine changed is not checked, as --strategy leaves out "
              << baseline::kReferenceRow << '\n';
  }
  if (!reference && scenario.workload.gradient.data == scenario::DataKind::kRandom) {
    return errorf(Code::kInvalidArgument,
                  "--strategy: with 'data: random' results are right when they equal those of {0}: "
                  "name {0} too",
                  baseline::kReferenceRow);
  }
  std::erase_if(scenario.expect, [&](const scenario::Expectation& expectation) {
    const bool gone = std::ranges::any_of(expectation.metrics(), [&](const auto& name) {
      const scenario::Metric* const metric =
          scenario::findMetric(name.metric, !name.strategy.empty());
      const bool needsReference = !reference && metric != nullptr && metric->needsFaultFree;
      return needsReference || (!name.strategy.empty() && !chosen(name.strategy));
    });
    const bool left_out = gone || !scenario::whyMeaningless(expectation, scenario).empty();
    if (left_out) {
      std::cerr << "not judged, as --strategy leaves it out: " << expectation.text << '\n';
    }
    return left_out;
  });
  return okStatus();
}

/// Where each scenario's result goes, with --out: there, or, of several scenarios, into a folder
/// named after each.
std::vector<std::string> directoriesOf(const RunOptions& options,
                                       const std::vector<scenario::Scenario>& scenarios) {
  if (scenarios.size() == 1) return {options.directory};
  std::vector<std::string> directories;
  for (const scenario::Scenario& scenario : scenarios) {
    const std::string base = fmt::format("{}/{}", options.directory, scenario.name);
    std::string path = base;
    // Two scenarios may have one name.
    for (int i = 2; std::ranges::count(directories, path) > 0; ++i) {
      path = fmt::format("{}-{}", base, i);
    }
    directories.push_back(std::move(path));
  }
  return directories;
}

/// With --out as it is; else a new folder below ./faultline-out named after scenario and time.
Result<std::string> makeDirectory(const std::string& given, const std::string& name) {
  std::filesystem::path path = given;
  std::error_code error;
  if (path.empty()) {
    std::filesystem::create_directories(kDefaultFolder, error);
    if (const int swept = run::sweepKilledRuns(kDefaultFolder); swept > 0) {
      std::cerr << fmt::format("removed {} folder(s) in {} of runs that were killed\n", swept,
                               kDefaultFolder);
    }
    const std::string base = fmt::format("{}/{}-{:%Y%m%d-%H%M%S}", kDefaultFolder, name,
                                         fmt::localtime(std::time(nullptr)));
    path = base;
    // Made and not looked for: another run may start in the same second.
    for (int i = 2; !error && !std::filesystem::create_directory(path, error) && !error; ++i) {
      path = fmt::format("{}-{}", base, i);
    }
  } else {
    std::filesystem::create_directories(path, error);
  }
  if (error) {
    return errorf(Code::kIo, "cannot create the output directory {}: {}; choose another with --out",
                  path.string(), error.message());
  }
  return path.string();
}

/// Says how to look inside, and waits.
void holdUntilInterrupted(const site::Cluster& cluster, launch::Privileges privileges,
                          run::Interrupt& interrupt) {
  const std::string nsenter =
      privileges == launch::Privileges::kUserNamespace
          ? fmt::format("nsenter --user=/proc/{}/ns/user --preserve-credentials", getpid())
          : "nsenter";
  const std::vector<std::string> ways = cluster.waysToLookInside(nsenter);
  if (ways.empty()) return;
  std::cout << std::flush;
  std::cerr << "the cluster is kept; look inside with these, and press Ctrl-C to end it:\n";
  for (const std::string& way : ways) std::cerr << "  " << way << "\n";
  pollfd waiting{interrupt.fd(), POLLIN, 0};
  while (!interrupt.pending()) (void)::poll(&waiting, 1, -1);
}

/// Puts a whole result into the place of an earlier one; of another one says where it is.
Status settle(run::OutputFolder& folder, bool whole, const std::string& directory) {
  if (!folder.replaces()) return okStatus();
  if (whole) return folder.replaceEarlier();
  std::cerr << printable(
      fmt::format("the earlier result stays in {}; what this run came to is in {}\n", directory,
                  folder.path()));
  return okStatus();
}

int runOne(scenario::Scenario scenario, const std::string& file, const RunOptions& options,
           const std::string& out, bool keep, std::optional<Duration> budget,
           launch::Privileges privileges, run::Interrupt& interrupt, Json& documents) {
  const Result<std::string> directory = makeDirectory(out, scenario.name);
  if (!directory.ok()) return fail("run", directory.status(), kExitUsage);
  Result<run::OutputFolder> folder =
      run::OutputFolder::claim(*directory, options.earlier(), run::runFoldersOf(scenario));
  if (!folder.ok()) return fail("run", folder.status(), kExitUsage);
  // Scripts read it.
  const bool shown = ::isatty(STDOUT_FILENO) == 1;
  if (!options.json) std::cout << (shown ? printable(*directory) : *directory) << std::endl;

  RunProgress progress(options.quiet, run::iterationsOf(scenario));
  std::function<bool(const reports::Run&)> isHopeless;
  if (options.failFast) {
    isHopeless = [&](const reports::Run& run) { return run::isHopeless(scenario, run); };
  }
  const run::ExperimentOptions experiment{
      .folder = *folder,
      .scenarioFile = file,
      .transcript = options.transcript,
      .keep = keep,
      .progress = [&](const std::string& line) { progress.print(line); },
      .moment = [&](const run::Moment& moment) { progress.show(moment); },
      .isHopeless = isHopeless,
      .budget = budget};
  const TimePoint began = now();
  const Status found = run::findRails(
      scenario, interrupt, [](const std::string& line) { std::cerr << printable(line) << '\n'; });
  run::ExperimentOutcome outcome =
      found.ok() ? run::runExperiment(scenario, experiment, interrupt)
                 : run::notBegun(scenario, experiment, found, interrupt.pending(), began);
  progress.clear();
  const reports::ScenarioResult result =
      run::analyse(scenario, std::move(outcome.runs), std::move(outcome.facts));
  Status written = folder->render(result);
  const bool whole = outcome.benchError.ok() && !result.interrupted;
  if (written.ok()) written = settle(*folder, whole, *directory);
  const std::string place = folder->replaces() ? folder->path() : *directory;
  // A report that could not be written is not pointed at.
  const std::string readable = written.ok() ? place : "";
  if (options.json) {
    documents.push_back({{"directory", place},
                         {"verdict", reports::nameOf(result.verdict)},
                         {"reason", result.reason},
                         {"headline", result.headline},
                         {"interrupted", result.interrupted},
                         {"result", place + "/result.json"}});
  } else if (options.quiet) {
    printPlain(result.headline + "\n");
  } else {
    const bool colour = terminalOf(STDOUT_FILENO).colour;
    printPlain(reports::collectivesText(result));
    printPlain(reports::terminalSummary(result, {.colour = colour, .report_dir = readable}),
               colour);
  }
  if (outcome.keptCluster) holdUntilInterrupted(*outcome.keptCluster, privileges, interrupt);
  if (!outcome.benchError.ok()) {
    return fail("run", outcome.benchError, codeOf(outcome.benchError));
  }
  if (!written.ok()) return fail("run", written, kExitCannotRun);
  return codeOf(result);
}

int runScenario(const RunOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  if (options.repeat) overrides.push_back(fmt::format("repeat={}", *options.repeat));
  if (options.seed) overrides.push_back(fmt::format("seed={}", *options.seed));
  std::vector<scenario::Scenario> scenarios;
  scenario::ClusterFile cluster;
  if (!options.cluster.empty()) {
    auto read = scenario::readClusterFile(options.cluster);
    if (!read.ok()) return fail("run", read.status().withContext("--cluster"), kExitUsage);
    cluster = *std::move(read);
  }
  bool mistakes = false;
  for (const std::string& file : options.files) {
    scenario::ReadResult read =
        scenario::readScenarioFile(file, overrides, scenario::RunsOn::kThisMachine, cluster);
    for (const scenario::Mistake& mistake : read.mistakes) std::cerr << mistake.toString() << '\n';
    mistakes = mistakes || !read.ok();
    if (!read.ok()) continue;
    if (const Status status = selectStrategies(*read.scenario, options.strategies); !status.ok()) {
      return fail("run", status, kExitUsage);
    }
    scenarios.push_back(std::move(*read.scenario));
  }
  if (mistakes) return kExitUsage;
  if (!options.transcript.empty() && scenarios.size() > 1) {
    return fail("run", Status(Code::kInvalidArgument, "--transcript is of one scenario"),
                kExitUsage);
  }
  const run::Capacity capacity = run::readCapacity();
  for (const scenario::Scenario& scenario : scenarios) {
    for (const std::string& warning : warningsOf(scenario, capacity)) {
      std::cerr << warning << '\n';
    }
  }
  std::optional<Duration> budget;
  if (!options.budget.empty()) {
    const auto given = parseDuration(options.budget);
    if (!given.ok()) return fail("run", given.status().withContext("--budget"), kExitUsage);
    budget = *given;
  }
  if (options.dryRun) {
    Json plans = Json::array();
    for (const scenario::Scenario& scenario : scenarios) {
      if (options.json) {
        plans.push_back(planJson(scenario));
      } else {
        printPlain(planText(scenario));
      }
    }
    if (options.json) print(plans);
    return kExitOk;
  }
  std::vector<std::string> directories(scenarios.size());
  if (!options.directory.empty()) directories = directoriesOf(options, scenarios);
  for (std::size_t i = 0; i < directories.size(); ++i) {
    if (directories[i].empty()) continue;
    const Status usable = run::OutputFolder::check(directories[i], options.earlier(),
                                                   run::runFoldersOf(scenarios[i]));
    if (!usable.ok()) return fail("run", usable, kExitUsage);
  }
  if (const Status status = fits(scenarios, capacity); !options.force && !status.ok()) {
    return fail("run", status, kExitCannotRun);
  }
  // Before anything is written: as root of a namespace of our own we still are the user outside.
  const auto takes = [](const auto& scenario) { return scenario.cluster.kind->takesPrivileges; };
  const bool needed = std::ranges::any_of(scenarios, takes);
  const auto other = std::ranges::find_if_not(scenarios, takes);
  if (needed && other != scenarios.end() && launch::wouldLeaveNetwork()) {
    const auto place = static_cast<std::size_t>(other - scenarios.begin());
    return fail("run",
                errorf(Code::kInvalidArgument,
                       "{} needs the network of this machine, as its cluster is of kind {}, and "
                       "others of these scenarios need one of their own, which this program enters "
                       "for good when it is not root: run them by two commands, or as root",
                       options.files[place], other->cluster.kind->name),
                kExitUsage);
  }
  const auto privileges = needed ? launch::enterPrivileges() : launch::Privileges::kRoot;
  if (!privileges.ok()) return fail("run", privileges.status(), kExitCannotRun);
  auto interrupt = run::Interrupt::watch();
  if (!interrupt.ok()) return fail("run", interrupt.status(), kExitCannotRun);
  const TimePoint began = now();
  int worst = kExitOk;
  Json documents = Json::array();
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    // Only the last: Ctrl-C, which ends the look inside, ends everything that would follow too.
    const bool keep = options.keep && i + 1 == scenarios.size();
    // What is left of the time is for all that are left, in equal parts.
    std::optional<Duration> part;
    if (budget) part = (*budget - (now() - began)) / static_cast<int>(scenarios.size() - i);
    // All files could be read, or we would not be here.
    const int code = runOne(std::move(scenarios[i]), options.files[i], options, directories[i],
                            keep, part, *privileges, *interrupt, documents);
    worst = worseExit(worst, code);
    if (code == kExitInterrupted || (options.failFast && code != kExitOk)) break;
  }
  if (options.json) print(documents);
  return worst;
}

}  // namespace

CLI::App* addRunCommand(CLI::App& app, int& exitCode) {
  CLI::App* const command =
      app.add_subcommand("run", "Run scenarios, and say what the faults cost");
  const auto options = std::make_shared<RunOptions>();
  command->add_option("FILE", options->files, "Scenario files; '-' is standard input")
      ->required()
      ->type_name("");
  command->add_option("--out", options->directory,
                      "Output directory (default: a new one below ./faultline-out); one with an "
                      "earlier result is refused without --force");
  command->add_flag("--force", options->force,
                    "Replace an earlier result in --out, once the new one is whole; and run also "
                    "when this machine does not seem to hold the job");
  command
      ->add_option("--strategy", options->strategies, "Only these strategies, with commas between")
      ->delimiter(',')
      ->allow_extra_args(false);  // or it would swallow the files that follow
  command
      ->add_option(
          "--cluster", options->cluster,
          "File with a section `cluster` alone, which takes the place of the scenarios' "
          "own: run them there. Or a launcher with the hosts of the allocation (slurm), or "
          "with these (ssh:n1,n2)")
      ->type_name("FILE");
  command->add_option("--repeat", options->repeat, "Blocks, instead of the scenario's `repeat`");
  command->add_option("--seed", options->seed, "Seed, instead of the scenario's");
  command->add_flag("--dry-run", options->dryRun,
                    "Only say what would be run, and about how long it takes");
  command->add_flag(
      "--fail-fast", options->failFast,
      "Stop after a run with which the scenario cannot pass any more (wrong elements, "
      "an invalid run, an end that contradicts an expectation on status or exit_code, a job "
      "that did not survive although no expectation says how it ends), and after the first "
      "scenario that does not pass");
  command
      ->add_option("--budget", options->budget,
                   "Begin no block that would not be over so long after the start; the first block "
                   "of a scenario is always made")
      ->type_name("DURATION");
  command->add_flag("--quiet,-q", options->quiet,
                    "Print only the output directory and, last, what came of it in a sentence");
  command->add_flag("--keep", options->keep,
                    "Leave the last cluster up until Ctrl-C, to look inside");
  // For those who change how results are worked out (docs/transcript.md).
  command->add_option("--transcript", options->transcript, "Also keep what the result is made of")
      ->group("");
  addOverrideOption(*command, options->overrides);
  addJsonFlag(*command, options->json);
  setFooter(*command,
            "The first line on standard output is the output directory, the last one says in a "
            "sentence what came of it; progress goes to standard error. For programs there is "
            "--json. summary.md in the output directory is for pull requests, junit.xml for CI.",
            {"faultline run scenarios/quickstart.yaml",
             "faultline run --strategy fault_free,hot_repair --repeat 6 scenarios/quickstart.yaml",
             "faultline run --dry-run scenarios/quickstart.yaml",
             "faultline run --cluster my_hosts.yaml scenarios/hosts.yaml",
             "faultline run --fail-fast --budget 10min --out result my.yaml",
             "faultline init --program './train.sh' | faultline run -"},
            "0 all expectations hold, 1 one fails or a job did not survive, 2 usage or scenario "
            "mistake, 3 this machine cannot run it, 4 something could not be restored, 5 invalid: "
            "a fault left no evidence, or an expectation cannot be judged, 130 interrupted. Of "
            "several scenarios the worst: 130, 4, 3, 2, 1, 5, 0");
  command->callback([options, &exitCode] { exitCode = runScenario(*options); });
  return command;
}

}  // namespace faultline::cli
