#include "harness/cli/compare_command.h"

#include <iostream>
#include <memory>
#include <string>

#include "harness/analysis/compare_results.h"
#include "harness/cli/cli.h"
#include "harness/cli/comparison_exit.h"
#include "harness/cli/output.h"
#include "harness/cli/result_folders.h"
#include "reports/markdown.h"

namespace faultline::cli {
namespace {

struct CompareOptions {
  std::string base;
  std::string now;
  double tolerance_pct = kDefaultTolerancePercent;
  bool allow_missing = false;
  std::string out;
  Earlier earlier = Earlier::kRefused;
  bool markdown = false;
  bool json = false;
};

int compare(const CompareOptions& options) {
  const auto base = readResults(std::span(&options.base, 1));
  if (!base.ok()) return fail("compare", base.status(), kExitUsage);
  const auto now = readResults(std::span(&options.now, 1));
  if (!now.ok()) return fail("compare", now.status(), kExitUsage);
  reports::Comparison comparison =
      run::compare(*base, *now, {options.base, options.now, options.tolerance_pct});
  comparison.allow_missing = options.allow_missing;
  if (options.json) {
    print(reports::comparisonJson(comparison));
  } else if (options.markdown) {
    printPlain(reports::markdownSummary(comparison));
  } else {
    printPlain(reports::comparisonText(comparison));
  }
  if (!options.out.empty()) {
    const Status status =
        reports::writeComparison(comparison, options.out, "compare", options.earlier);
    if (!status.ok()) return fail("compare", status, exitOfWriting(status));
    if (!options.json && !options.markdown) {
      printPlain("report: " + options.out + "/compare.html\n");
    }
  }
  return exitCodeOf(comparison.standing());
}

}  // namespace

CLI::App* addCompareCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("compare", "Say what changed between two results, and whether by chance");
  const auto options = std::make_shared<CompareOptions>();
  command->add_option("BASE", options->base, "Result, or folder of results, of before")
      ->required()
      ->type_name("");
  command->add_option("NEW", options->now, "The same of now")->required()->type_name("");
  command
      ->add_option("--tolerance", options->tolerance_pct,
                   "Significant changes for the worse by more than this are regressions; overheads "
                   "in points")
      ->type_name("PERCENT")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--allow-missing", options->allow_missing,
                    "Scenarios and strategies that NEW has not are no change for the worse");
  command->add_option("--out", options->out,
                      "Write compare.html, compare.json and compare.md into this directory");
  addForceFlag(*command, options->earlier);
  command->add_flag("--markdown", options->markdown,
                    "Print a summary in Markdown, for a pull request");
  addJsonFlag(*command, options->json);
  setFooter(*command, "",
            {"faultline compare faultline-out/yesterday faultline-out/today",
             "faultline compare --tolerance 5 --out diff base.json new.json"},
            "0 nothing is worse, 1 a regression, a scenario or strategy that NEW has not, or a "
            "scenario that passed and fails now, 2 usage mistake, 5 no row could be compared "
            "(fewer than 5 runs on a side, too much noise, nothing in common), or a scenario that "
            "passed is invalid now");
  command->callback([options, &exit_code] { exit_code = compare(*options); });
  return command;
}

}  // namespace faultline::cli
