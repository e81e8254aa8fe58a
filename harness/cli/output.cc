#include "harness/cli/output.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <tuple>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "harness/cli/cli.h"
#include "reports/terminal_summary.h"

namespace faultline::cli {

void print(const Json& json) {
  constexpr int kIndent = 2;
  std::cout << printableJson(json.dump(kIndent, ' ', false, Json::error_handler_t::replace))
            << '\n';
}

void printPlain(std::string_view text, bool coloured) {
  while (!text.empty()) {
    std::size_t end = text.size(), length = 0;
    if (coloured) {
      for (const std::string_view sequence : reports::terminalColours()) {
        const std::size_t at = text.find(sequence);
        if (at < end) std::tie(end, length) = std::pair(at, sequence.size());
      }
    }
    std::cout << printable(text.substr(0, end)) << text.substr(end, length);
    text.remove_prefix(end + length);
  }
}

int fail(std::string_view verb, const Status& status, int code) {
  std::cerr << "faultline " << verb << ": " << printableMessage(status.message()) << '\n';
  return code;
}

int exitOfFault(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
    case Code::kNotFound:
      return kExitUsage;
    case Code::kNotRestored:
      return kExitNotRestored;
    default:
      return kExitCannotRun;
  }
}

int exitOfWriting(const Status& status) {
  const bool place =
      status.code() == Code::kAlreadyExists || status.code() == Code::kInvalidArgument;
  return place ? kExitUsage : kExitCannotRun;
}

void addForceFlag(CLI::App& command, Earlier& earlier) {
  command.add_flag_callback(
      "--force", [&earlier] { earlier = Earlier::kReplaced; },
      "Replace files in --out that an earlier version wrote");
}

void setFooter(CLI::App& command, std::string_view words,
               std::initializer_list<std::string_view> examples, std::string_view exit_codes) {
  std::string text;
  if (!words.empty()) text += wrapText(words, 0) + "\n\n";
  text += "examples:\n";
  for (const std::string_view example : examples) text += fmt::format("  {}\n", example);
  text += "\n" + wrapText(fmt::format("exit codes: {}", exit_codes), 0);
  command.footer(text);
}

CLI::Validator oneOf(std::span<const std::string_view> words) {
  return {[words](std::string& text) {
            if (std::ranges::count(words, std::string_view(text)) > 0) return std::string();
            return fmt::format("there is no '{}'{}", text, suggestion(text, words));
          },
          fmt::format("{{{}}}", join(words, ",")), ""};
}

void addJsonFlag(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "Print JSON on stdout");
}

void addOverrideOption(CLI::App& command, std::vector<std::string>& overrides) {
  // One value per option: more would swallow the file names that follow.
  command
      .add_option("--set", overrides,
                  "Change one value before it is checked, like workload.iterations=10 or "
                  "faults.0.duration=2s; may be repeated")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace faultline::cli
