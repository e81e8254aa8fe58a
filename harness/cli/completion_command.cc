#include "harness/cli/completion_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "harness/cli/catalogue.h"
#include "harness/cli/cli.h"
#include "harness/cli/output.h"

namespace faultline::cli {
namespace {

/// Options and verbs of one verb, and the names that its first argument may be.
std::string wordsOf(const CLI::App& verb) {
  std::string words;
  for (const CLI::App* inner : verb.get_subcommands({})) words += inner->get_name() + " ";
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
  }
  if (verb.get_name() == "list") {
    for (const std::string& name : categoryNames()) words += name + " ";
  }
  if (verb.get_name() == "describe") {
    for (const Category& category : catalogue()) {
      if (category.name == "scenarios") continue;  // another folder has others
      for (const Item& item : category.items) words += item.name + " ";
    }
  }
  return words;
}

void addCases(const CLI::App& verb, const std::string& path, std::string& cases) {
  cases += fmt::format("    '{}') words='{}' ;;\n", path, wordsOf(verb));
  for (const CLI::App* inner : verb.get_subcommands({})) {
    addCases(*inner, path.empty() ? inner->get_name() : path + " " + inner->get_name(), cases);
  }
}

std::string bashScript(const CLI::App& app) {
  std::string cases;
  addCases(app, "", cases);
  std::string paths;
  for (const CLI::App* verb : app.get_subcommands({})) {
    for (const CLI::App* inner : verb->get_subcommands({})) {
      paths += fmt::format("'{} {}'|", verb->get_name(), inner->get_name());
    }
  }
  if (!paths.empty()) paths.pop_back();
  return fmt::format(R"(# bash completion of faultline: source <(faultline completion bash)
_faultline() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} verb='' words=''
  (( COMP_CWORD > 1 )) && verb=${{COMP_WORDS[1]}}
  if (( COMP_CWORD > 2 )); then
    case "$verb ${{COMP_WORDS[2]}}" in
      {}) verb="$verb ${{COMP_WORDS[2]}}" ;;
    esac
  fi
  case "$verb" in
{}    help) words='{}' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _faultline faultline
)",
                     paths, cases, wordsOf(app));
}

}  // namespace

CLI::App* addCompletionCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("completion", "Print a script that completes command lines in a shell");
  const auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "The shell: bash")->required()->type_name("");
  setFooter(*command, "",
            {"source <(faultline completion bash)",
             "faultline completion bash > /etc/bash_completion.d/faultline"},
            kLookingExitCodes);
  command->callback([shell, &app, &exit_code] {
    if (*shell != "bash") {
      exit_code =
          fail("completion",
               errorf(Code::kInvalidArgument, "there is no script for '{}': bash is known", *shell),
               kExitUsage);
      return;
    }
    std::cout << bashScript(app);
    exit_code = kExitOk;
  });
  return command;
}

}  // namespace faultline::cli
