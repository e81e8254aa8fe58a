#include "harness/cli/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/version.h"
#include "harness/cli/compare_command.h"
#include "harness/cli/describe_command.h"
#include "harness/cli/doctor_command.h"
#include "harness/cli/history_command.h"
#include "harness/cli/inject_command.h"
#include "harness/cli/lab_command.h"
#include "harness/cli/list_command.h"
#include "harness/cli/output.h"
#include "harness/cli/report_command.h"
#include "harness/cli/run_command.h"
#include "harness/cli/schedule_command.h"
#include "harness/cli/validate_command.h"

namespace faultline::cli {
namespace {

/// Adds one verb. The verb runs while the command line is parsed and leaves its exit code.
using AddCommand = CLI::App* (*)(CLI::App& app, int& exit_code);

constexpr std::array kCommands{
    AddCommand{addRunCommand},      AddCommand{addValidateCommand}, AddCommand{addListCommand},
    AddCommand{addDescribeCommand}, AddCommand{addScheduleCommand}, AddCommand{addReportCommand},
    AddCommand{addCompareCommand},  AddCommand{addHistoryCommand},  AddCommand{addDoctorCommand},
    AddCommand{addInjectCommand},   AddCommand{addLabCommand},
};

constexpr const char* kExamples = R"(examples:
  faultline run scenarios/quickstart.yaml
  faultline run --strategy fault_free,hot_repair --repeat 6 scenarios/quickstart.yaml
  faultline validate scenarios/quickstart.yaml
  faultline validate --set faults.0.duration=2s scenarios/quickstart.yaml
  faultline list faults
  faultline describe port_down
  faultline describe scenario
  faultline inject post_error --target pid=1234,dev=mlx5_0 --for 2s --param budget=1
  faultline doctor

exit codes: 0 all expectations hold, 1 an expectation fails, 2 usage or scenario mistake, 3 this
machine cannot run it, 4 something could not be restored, 5 invalid: a fault left no evidence,
130 interrupted)";

std::string unknownVerb(const CLI::App& app, const std::string& verb) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  return fmt::format("faultline: there is no verb '{}'{}\nRun with --help for more information.\n",
                     verb, suggestion(verb, known));
}

/// CLI11 answers --version before it looks at what else is there.
bool asksForVersionAsJson(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  return words.size() == 2 && std::ranges::count(words, "--version") == 1 &&
         std::ranges::count(words, "--json") == 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Faultline breaks a network on purpose while collective communication runs over it, "
      "keeps the job alive, and says what it cost.",
      "faultline"};
  app.set_version_flag("--version", fmt::format("faultline {} ({})", versionNumber(), gitCommit()));
  app.footer(kExamples);
  int exit_code = kExitOk;
  for (const AddCommand add : kCommands) add(app, exit_code)->footer("");
  if (const Status status = initLog("faultline"); !status.ok()) {
    std::cerr << "faultline: cannot start the log: " << status.message() << '\n';
    return kExitCannotRun;
  }
  try {
    if (asksForVersionAsJson(argc, argv)) {
      print({{"name", "faultline"}, {"version", versionNumber()}, {"git", gitCommit()}});
      return kExitOk;
    }
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) throw CLI::RequiredError("A verb");
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      std::cerr << printable(unknownVerb(app, argv[1]));
      return kExitUsage;
    }
    std::ostringstream out, err;  // what was typed is quoted in them
    const int code = app.exit(error, out, err);
    std::cout << printable(out.str());
    std::cerr << printable(err.str());
    return code == 0 ? kExitOk : kExitUsage;
  }
  return exit_code;
}

}  // namespace faultline::cli
