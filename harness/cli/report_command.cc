#include "harness/cli/report_command.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/input_file.h"
#include "harness/analysis/cause_matrix.h"
#include "harness/analysis/joined.h"
#include "harness/analysis/replay.h"
#include "harness/cli/cli.h"
#include "harness/cli/output.h"
#include "harness/cli/result_folders.h"
#include "harness/cli/terminal.h"
#include "reports/confusion.h"
#include "reports/markdown.h"
#include "reports/overview.h"
#include "reports/renderer.h"
#include "reports/result_json.h"
#include "reports/result_schema.h"
#include "reports/scenario_table.h"
#include "reports/sweep_table.h"
#include "reports/terminal_summary.h"

namespace faultline::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> directories;
  std::string transcript;
  bool matrix = false;
  bool table = false;
  bool schema = false;
  bool sweep = false;
  bool overview = false;
  std::string out;
  Earlier earlier = Earlier::kRefused;
  bool markdown = false;
  bool json = false;
};

reports::Json summaryOf(const reports::ScenarioResult& result, const std::string& directory) {
  reports::Json files = reports::Json::array();
  for (const auto& renderer : reports::allRenderers()) {
    if (renderer->applies(result)) files.push_back(directory + "/" + renderer->fileName());
  }
  return {{"directory", directory},
          {"verdict", reports::nameOf(result.verdict)},
          {"interrupted", result.interrupted},
          {"files", std::move(files)}};
}

int reportAgain(const std::string& directory, bool json, bool markdown) {
  const auto result = reports::readResult(directory);
  if (!result.ok()) return fail("report", result.status(), kExitUsage);
  const Status status = reports::renderDirectory(directory);
  if (!status.ok()) return fail("report", status, exitOfWriting(status));
  if (json) {
    print(summaryOf(*result, directory));
  } else if (markdown) {
    printPlain(reports::markdownSummary(*result));
  } else {
    const bool colour = terminalOf(STDOUT_FILENO).colour;
    printPlain(reports::terminalSummary(*result, {.colour = colour, .report_dir = directory}),
               colour);
  }
  return kExitOk;
}

int table(const ReportOptions& options) {
  auto results = readResults(options.directories);
  if (!results.ok()) return fail("report", results.status(), kExitUsage);
  printPlain(reports::scenarioTable(run::joined(std::move(*results))));
  return kExitOk;
}

int sweep(const ReportOptions& options) {
  const auto results = readResults(options.directories);
  if (!results.ok()) return fail("report", results.status(), kExitUsage);
  printPlain(reports::sweepTable(*results));
  return kExitOk;
}

int matrix(const ReportOptions& options) {
  const auto results = readResults(options.directories);
  if (!results.ok()) return fail("report", results.status(), kExitUsage);
  const reports::ConfusionMatrix matrix = run::confusionOf(*results);
  const bool plain = !options.json && !options.markdown;
  if (options.json) {
    print(reports::confusionJson(matrix));
  } else if (options.markdown) {
    printPlain(reports::markdownSummary(matrix, *results));
  } else {
    printPlain(reports::confusionText(matrix));
  }
  const std::string complaint = matrix.complaint();
  if (plain && !complaint.empty()) printPlain("\n" + complaint + "\n");
  const int verdict = complaint.empty() ? kExitOk : kExitExpectation;
  if (options.out.empty()) return verdict;
  const Status status = reports::writeConfusion(matrix, *results, options.out, options.earlier);
  if (!status.ok()) return fail("report", status, exitOfWriting(status));
  if (plain) printPlain("\nreport: " + options.out + "/matrix.html\n");
  return verdict;
}

/// Where a result's own report is, seen from `directory`; empty: there is none.
std::string reportOf(const FoundResult& found, const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path page = fs::path(found.folder) / "report.html";
  if (found.folder.empty() || !fs::exists(page, error)) return "";
  const fs::path from = fs::proximate(page, directory, error);
  return error ? "" : fs::path(".") / from;
}

int overview(const ReportOptions& options) {
  const auto results = findResults(options.directories);
  if (!results.ok()) return fail("report", results.status(), kExitUsage);
  std::vector<reports::OverviewEntry> entries;
  for (const FoundResult& one : *results) {
    entries.push_back({&one.result, reportOf(one, options.out)});
  }
  if (options.json) print(reports::overviewView(entries));
  const Status status = reports::writeOverview(entries, options.out, options.earlier);
  if (!status.ok()) return fail("report", status, exitOfWriting(status));
  if (!options.json) printPlain("report: " + options.out + "/overview.html\n");
  return kExitOk;
}

int replayed(const std::string& transcript) {
  const auto text = readFile(transcript);
  if (!text.ok()) return fail("report", text.status(), kExitUsage);
  const auto result = run::replay(*text);
  if (!result.ok()) return fail("report", result.status().withContext(transcript), kExitUsage);
  std::cout << reports::toJsonText(*result);
  return kExitOk;
}

int report(const ReportOptions& options) {
  if (!options.transcript.empty() && (options.schema || !options.directories.empty())) {
    return fail("report",
                Status(Code::kInvalidArgument, "--transcript stands alone: leave the rest out"),
                kExitUsage);
  }
  if (!options.transcript.empty()) return replayed(options.transcript);
  if (options.schema) {
    print(reports::resultSchema());
    return kExitOk;
  }
  if (options.matrix) return matrix(options);
  if (options.overview && !options.out.empty()) return overview(options);
  if (options.overview) {
    return fail("report",
                Status(Code::kInvalidArgument, "--overview is a page: say where, with --out"),
                kExitUsage);
  }
  if (options.table && options.out.empty() && !options.json) return table(options);
  if (options.sweep && options.out.empty() && !options.json) return sweep(options);
  if (options.table || options.sweep || options.directories.size() > 1 || !options.out.empty()) {
    return fail("report",
                Status(Code::kInvalidArgument,
                       "several folders are for --overview, --matrix, --table and --sweep, and "
                       "--out for --overview and --matrix; --table and --sweep are text"),
                kExitUsage);
  }
  return reportAgain(options.directories.front(), options.json, options.markdown);
}

}  // namespace

CLI::App* addReportCommand(CLI::App& app, int& exitCode) {
  CLI::App* command = app.add_subcommand(
      "report", "Make the report of a finished run again, or one of many runs together");
  auto options = std::make_shared<ReportOptions>();
  CLI::Option* const directories =
      command->add_option("DIR", options->directories, "Output directory of a run, or of many")
          ->type_name("");
  command->add_flag("--matrix", options->matrix,
                    "What was injected against what was found, over all results in the "
                    "directories");
  command
      ->add_flag("--table", options->table,
                 "A Markdown table of all results in the directories: faults, what was found, "
                 "pauses, aims, verdicts; results of the same scenario in one row")
      ->excludes("--matrix");
  command
      ->add_flag("--sweep", options->sweep,
                 "A Markdown table of all collective calls in the directories: time against ideal, "
                 "bound and model")
      ->excludes("--matrix")
      ->excludes("--table");
  command
      ->add_flag("--overview", options->overview,
                 "One page of all results in the directories: strategies against baselines, with "
                 "intervals and the bound; a section for each result")
      ->excludes("--matrix")
      ->excludes("--table")
      ->excludes("--sweep");
  command->add_option(
      "--out", options->out,
      "With --matrix or --overview: write matrix.html, matrix.json and summary.md, or "
      "overview.html, into this directory");
  addForceFlag(*command, options->earlier);
  command
      ->add_flag("--markdown", options->markdown,
                 "Print a summary in Markdown, for a pull request; with --matrix of all results")
      ->excludes("--table")
      ->excludes("--sweep")
      ->excludes("--overview");
  // For those who change how results are worked out (docs/transcript.md).
  command->add_option("--transcript", options->transcript, "Print the result of this transcript")
      ->group("");
  command->add_flag("--schema", options->schema,
                    "Print the JSON Schema of result.json, and nothing else");
  command->add_flag("--json", options->json, "Print the verdict and the files written as JSON");
  setFooter(
      *command, "Writes all files but result.json again, which stays as it is.",
      {"faultline report faultline-out/quickstart",
       "faultline report --overview nightly/acceptance --out nightly",
       "faultline report --matrix nightly/acceptance --out nightly",
       "faultline report --table nightly/acceptance", "faultline report --sweep nightly/sweep"},
      "0 ok, 2 usage mistake, no result, or something else in the place of a file, 3 a file could "
      "not be written");
  command->callback([options, directories, &exitCode] {
    if (directories->empty() && !options->schema && options->transcript.empty())
      throw CLI::RequiredError("DIR");
    exitCode = report(*options);
  });
  return command;
}

}  // namespace faultline::cli
