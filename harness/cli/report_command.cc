#include "harness/cli/report_command.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "harness/cli/cli.h"
#include "reports/renderer.h"
#include "reports/result_json.h"
#include "reports/terminal_summary.h"

namespace faultline::cli {
namespace {

struct Options {
  std::string directory;
  bool json = false;
};

int fail(const Status& status, int code) {
  std::fprintf(stderr, "faultline report: %s\n", status.message().c_str());
  return code;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

reports::Json summaryOf(const reports::ScenarioResult& result, const std::string& directory) {
  reports::Json files = reports::Json::array();
  for (const auto& renderer : reports::allRenderers()) {
    files.push_back(directory + "/" + renderer->fileName());
  }
  return {{"directory", directory},
          {"verdict", reports::nameOf(result.verdict)},
          {"interrupted", result.interrupted},
          {"files", std::move(files)}};
}

int report(const Options& options) {
  const auto result = reports::readResult(options.directory);
  if (!result.ok()) return fail(result.status(), kExitUsage);
  const Status status = reports::renderDirectory(options.directory);
  if (!status.ok()) return fail(status, kExitCannotRun);
  if (options.json) {
    print(summaryOf(*result, options.directory)
              .dump(2, ' ', false, reports::Json::error_handler_t::replace) +
          "\n");
  } else {
    print(reports::terminalSummary(
        *result, {.colour = ::isatty(STDOUT_FILENO) == 1, .report_dir = options.directory}));
  }
  return kExitOk;
}

}  // namespace

CLI::App* addReportCommand(CLI::App& app, int& exitCode) {
  CLI::App* command =
      app.add_subcommand("report", "Make the report of a finished run again from its result.json");
  auto options = std::make_shared<Options>();
  command->add_option("DIR", options->directory, "Output directory of a run")->required();
  command->add_flag("--json", options->json, "Print the verdict and the files written as JSON");
  command->footer(
      "Writes results.csv, junit.xml, trace.json and report.html again; result.json stays as it "
      "is.\n\nExample:\n  faultline report faultline-out/quickstart");
  command->callback([options, &exitCode] { exitCode = report(*options); });
  return command;
}

}  // namespace faultline::cli
