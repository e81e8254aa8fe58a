#include "harness/cli/history_command.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/printable.h"
#include "harness/cli/cli.h"
#include "harness/cli/comparison_exit.h"
#include "harness/cli/output.h"
#include "harness/cli/result_folders.h"
#include "harness/history/store.h"
#include "harness/history/trend.h"

namespace faultline::cli {
namespace {

struct HistoryOptions {
  std::string database;
  std::vector<std::string> results;
  history::TrendOptions trend{.name = "", .tolerance_pct = kDefaultTolerancePercent};
  bool allow_missing = false;
  std::string out;
  Earlier earlier = Earlier::kRefused;
  bool json = false;
};

#ifdef FAULTLINE_SQLITE

int add(const HistoryOptions& options) {
  const auto results = readResults(options.results);
  if (!results.ok()) return fail("history", results.status(), kExitUsage);
  auto store = history::Store::open(options.database);
  if (!store.ok()) {
    const bool in_the_way = store.status().code() == Code::kAlreadyExists;
    return fail("history", store.status(), in_the_way ? kExitUsage : kExitCannotRun);
  }
  int added = 0;
  for (const reports::ScenarioResult& result : *results) {
    const auto was_new = store->add(result);
    if (!was_new.ok()) return fail("history", was_new.status(), kExitCannotRun);
    added += *was_new ? 1 : 0;
  }
  const int known = static_cast<int>(results->size()) - added;
  if (options.json) {
    print({{"added", added}, {"known", known}});
  } else {
    std::cout << printable(options.database) << ": " << added << " added, " << known
              << " known already\n";
  }
  return kExitOk;
}

int trend(HistoryOptions options) {
  const auto store = history::Store::openExisting(options.database);
  if (!store.ok()) return fail("history", store.status(), kExitUsage);
  const auto results = store->read();
  if (!results.ok()) return fail("history", results.status(), kExitUsage);
  options.trend.name = std::filesystem::path(options.database).filename();
  reports::Comparison comparison = history::trend(*results, options.trend);
  comparison.allow_missing = options.allow_missing;
  if (options.json) {
    print(reports::comparisonJson(comparison));
  } else {
    printPlain(reports::comparisonText(comparison));
  }
  if (!options.out.empty()) {
    const Status status =
        reports::writeComparison(comparison, options.out, "trend", options.earlier);
    if (!status.ok()) return fail("history", status, exitOfWriting(status));
    if (!options.json) printPlain("report: " + options.out + "/trend.html\n");
  }
  return exitCodeOf(comparison.standing());
}

#else

int missing() {
  return fail(
      "history",
      Status(Code::kUnsupported,
             "this build has no SQLite: install libsqlite3-dev (ci/setup.sh does), configure "
             "and build again"),
      kExitCannotRun);
}
int add(const HistoryOptions& /*options*/) { return missing(); }
int trend(const HistoryOptions& /*options*/) { return missing(); }

#endif

}  // namespace

CLI::App* addHistoryCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("history",
                         "Keep results in a file, and say what changed since the nights "
                         "before");
  command->require_subcommand(1);
  const auto options = std::make_shared<HistoryOptions>();

  CLI::App* const adding = command->add_subcommand("add", "Add results to a history");
  adding->add_option("DB", options->database, "SQLite file; made when it is not there")
      ->required()
      ->type_name("");
  adding->add_option("RESULT", options->results, "Results, or folders of results")
      ->required()
      ->type_name("");
  addJsonFlag(*adding, options->json);
  adding->callback([options, &exit_code] { exit_code = add(*options); });

  CLI::App* const showing = command->add_subcommand(
      "trend", "Hold the newest result of each scenario against the nights before it");
  showing->add_option("DB", options->database, "SQLite file")->required()->type_name("");
  showing
      ->add_option("--nights", options->trend.nights,
                   "So many results before the newest, of the same processor and cores")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  showing
      ->add_option("--tolerance", options->trend.tolerance_pct,
                   "Significant changes for the worse by more than this are regressions; overheads "
                   "in points")
      ->type_name("PERCENT")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  showing->add_flag("--allow-missing", options->allow_missing,
                    "Scenarios that the last night did not run, and strategies that the newest "
                    "result has not, are no change for the worse");
  showing->add_option("--out", options->out, "Write trend.html and trend.json into this directory");
  addForceFlag(*showing, options->earlier);
  addJsonFlag(*showing, options->json);
  showing->callback([options, &exit_code] { exit_code = trend(*options); });

  constexpr const char* kAddExample = "faultline history add results.db faultline-out/quickstart";
  constexpr const char* kTrendExample =
      "faultline history trend results.db --nights 14 --out trend";
  setFooter(*adding, "", {kAddExample}, "0 ok, 2 a result cannot be read, 3 the file cannot");
  setFooter(
      *showing, "", {kTrendExample},
      "0 nothing is worse, 1 a regression, a scenario that the last night did not run, a "
      "strategy that the newest result has not, or a scenario that mostly passed and fails "
      "now, 2 usage mistake, 5 no row could be compared, or one that mostly passed is invalid "
      "now");
  setFooter(*command, "", {kAddExample, kTrendExample},
            "as each of the two says: 'faultline history trend --help'");
  return command;
}

}  // namespace faultline::cli
