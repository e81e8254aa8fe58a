#include "harness/cli/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/version.h"
#include "harness/cli/compare_command.h"
#include "harness/cli/completion_command.h"
#include "harness/cli/describe_command.h"
#include "harness/cli/doctor_command.h"
#include "harness/cli/faultd_command.h"
#include "harness/cli/history_command.h"
#include "harness/cli/init_command.h"
#include "harness/cli/inject_command.h"
#include "harness/cli/lab_command.h"
#include "harness/cli/list_command.h"
#include "harness/cli/output.h"
#include "harness/cli/report_command.h"
#include "harness/cli/restore_command.h"
#include "harness/cli/run_command.h"
#include "harness/cli/schedule_command.h"
#include "harness/cli/validate_command.h"
#include "injector/fault_kind.h"

namespace faultline::cli {
namespace {

/// Adds one verb. The verb runs while the command line is parsed and leaves its exit code.
using AddCommand = CLI::App* (*)(CLI::App& app, int& exit_code);

constexpr std::array kCommands{
    AddCommand{addRunCommand},        AddCommand{addValidateCommand}, AddCommand{addListCommand},
    AddCommand{addDescribeCommand},   AddCommand{addScheduleCommand}, AddCommand{addReportCommand},
    AddCommand{addCompareCommand},    AddCommand{addHistoryCommand},  AddCommand{addDoctorCommand},
    AddCommand{addInjectCommand},     AddCommand{addRestoreCommand},  AddCommand{addStatusCommand},
    AddCommand{addFaultdCommand},     AddCommand{addLabCommand},      AddCommand{addInitCommand},
    AddCommand{addCompletionCommand},
};

using Words = std::vector<std::string>;

bool isOption(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

std::vector<std::string> verbsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string suggestionOf(const std::string& word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> known(names.begin(), names.end());
  return suggestion(word, known);
}

/// "faultline history" of the verb `trend` in it.
std::string callOf(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  return parent == nullptr ? app.get_name() : callOf(*parent) + " " + app.get_name();
}

CLI::App* innerVerb(CLI::App& app, const std::string& name) {
  const auto verbs = app.get_subcommands({});
  const auto found =
      std::ranges::find_if(verbs, [&](const CLI::App* verb) { return verb->get_name() == name; });
  return found == verbs.end() ? nullptr : *found;
}

/// The verb that `words` name, as far as they do; `next` is the first word behind it.
CLI::App* verbOf(CLI::App& app, const Words& words, std::size_t& next) {
  CLI::App* verb = &app;
  for (next = 0; next < words.size(); ++next) {
    CLI::App* const inner = innerVerb(*verb, words[next]);
    if (inner == nullptr) break;
    verb = inner;
  }
  return verb;
}

/// What is wrong with a word that stands where a verb must; empty: nothing.
std::string whyNoVerb(CLI::App& app, const Words& words) {
  std::size_t next = 0;
  const CLI::App* const verb = verbOf(app, words, next);
  std::vector<std::string> possible = verbsOf(*verb);
  if (verb == &app) possible.insert(possible.end(), {"help", "version"});
  if (next == words.size() || isOption(words[next]) || possible.empty()) return "";
  return fmt::format("{}: there is no verb '{}'{}", callOf(*verb), words[next],
                     suggestionOf(words[next], possible));
}

/// The same of an option.
std::string whyNoOption(CLI::App& app, const Words& words) {
  std::size_t next = 0;
  const CLI::App* const verb = verbOf(app, words, next);
  std::vector<std::string> possible;
  for (const CLI::Option* option : verb->get_options()) {
    for (const std::string& name : option->get_lnames()) possible.push_back("--" + name);
  }
  for (; next < words.size() && words[next] != "--"; ++next) {
    const std::string name = words[next].substr(0, words[next].find('='));
    if (!name.starts_with("--") || std::ranges::count(possible, name) > 0) continue;
    return fmt::format("{}: there is no option '{}'{}", callOf(*verb), name,
                       suggestionOf(name, possible));
  }
  return "";
}

/// `help [VERB...]`: the help of that verb, also where words that are no verb follow.
int help(CLI::App& app, const Words& words) {
  if (const std::string why = whyNoVerb(app, words); !why.empty()) {
    std::cerr << printableMessage(why) << '\n';
    return kExitUsage;
  }
  std::size_t next = 0;
  const CLI::App* const verb = verbOf(app, words, next);
  std::cout << verb->help(verb->get_parent() == nullptr ? "" : callOf(*verb->get_parent()));
  return kExitOk;
}

int version(bool json) {
  if (json) {
    print({{"name", "faultline"}, {"version", versionNumber()}, {"git", gitCommit()}});
  } else {
    std::cout << fmt::format("faultline {} ({})\n", versionNumber(), gitCommit());
  }
  return kExitOk;
}

/// `version`, `-V` or `--version` comes first, but for `--json`.
bool asksForVersion(const Words& words) {
  const auto word = std::ranges::find_if(words, [](const auto& one) { return one != "--json"; });
  return word != words.end() && (*word == "version" || *word == "--version" || *word == "-V");
}

int mistake(const std::string& why, const std::string& call) {
  std::cerr << printableMessage(why) << fmt::format("\n'{} --help' says more\n", call);
  return kExitUsage;
}

void describe(CLI::App& app) {
  app.set_help_flag("-h,--help", "Print this help and exit; so does 'faultline help [VERB]'");
  app.add_flag_function(
      "-V,--version", [](std::int64_t /*times*/) {},
      "Print version and commit and exit; so does 'faultline version'");
  setFooter(app, "",
            {"faultline run scenarios/quickstart.yaml", "faultline init --program './train.sh'",
             "faultline validate my.yaml", "faultline list", "faultline list faults",
             fmt::format("faultline describe {}", injector::kUsualFault),
             "faultline describe failover_pause_ms", "faultline describe scenario",
             "faultline doctor", "source <(faultline completion bash)"},
            "0 all expectations hold, 1 an expectation fails, 2 usage or scenario mistake, 3 this "
            "machine cannot run it, 4 something could not be restored, 5 invalid: a fault left no "
            "evidence, 130 interrupted");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Faultline breaks a network on purpose while collective communication runs over it, "
      "keeps the job alive, and says what it cost.",
      "faultline"};
  int exit_code = kExitOk;
  // Before the footer: verbs that have none would take it over.
  for (const AddCommand add : kCommands) add(app, exit_code);
  describe(app);
  if (const Status status = initLog("faultline"); !status.ok()) {
    std::cerr << "faultline: cannot start the log: " << status.message() << '\n';
    return kExitCannotRun;
  }
  const Words words(argv + std::min(argc, 1), argv + argc);
  if (asksForVersion(words)) return version(std::ranges::count(words, "--json") > 0);
  if (!words.empty() && words.front() == "help") {
    return help(app, Words(words.begin() + 1, words.end()));
  }
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) throw CLI::RequiredError("A verb");
  } catch (const CLI::ParseError& error) {
    std::size_t next = 0;
    const std::string call = callOf(*verbOf(app, words, next));
    const std::string no_verb = whyNoVerb(app, words);
    // Help of a verb that is not there would be that of another.
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success) && no_verb.empty()) {
      return app.exit(error, std::cout, std::cerr) == 0 ? kExitOk : kExitUsage;
    }
    for (const auto& why : {no_verb, whyNoOption(app, words)}) {
      if (!why.empty()) return mistake(why, call);
    }
    return mistake(fmt::format("{}: {}", call, error.what()), call);
  }
  return exit_code;
}

}  // namespace faultline::cli
