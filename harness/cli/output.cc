#include "harness/cli/output.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "base/printable.h"

namespace faultline::cli {

void print(const Json& json) {
  constexpr int kIndent = 2;
  std::cout << printableJson(json.dump(kIndent, ' ', false, Json::error_handler_t::replace))
            << '\n';
}

int fail(std::string_view verb, const Status& status, int code) {
  std::cerr << "faultline " << verb << ": " << printable(status.message()) << '\n';
  return code;
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
