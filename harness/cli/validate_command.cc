#include "harness/cli/validate_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "harness/cli/cli.h"
#include "harness/cli/estimate_words.h"
#include "harness/cli/output.h"
#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/schema.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::cli {
namespace {

struct ValidateOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  bool json = false;
  bool schema = false;
};

Json toJson(const std::string& file, const scenario::ReadResult& result,
            const run::Capacity& capacity) {
  Json json{{"file", file}, {"ok", result.ok()}, {"mistakes", Json::array()}};
  for (const scenario::Mistake& mistake : result.mistakes) {
    json["mistakes"].push_back({{"source", mistake.source},
                                {"line", mistake.line},
                                {"column", mistake.column},
                                {"message", mistake.message}});
  }
  json["scenario"] = result.ok() ? scenario::toJson(*result.scenario) : Json();
  json["estimate"] = result.ok() ? estimateJson(*result.scenario) : Json();
  json["warnings"] =
      result.ok() ? warningsOf(*result.scenario, capacity) : std::vector<std::string>();
  return json;
}

int validate(const ValidateOptions& options) {
  if (options.schema) {
    print(scenario::scenarioSchema());
    return kExitOk;
  }
  const run::Capacity capacity = run::readCapacity();
  bool all_ok = true;
  Json files = Json::array();
  for (const std::string& file : options.files) {
    const scenario::ReadResult result =
        scenario::readScenarioFile(file, options.overrides, scenario::RunsOn::kThisMachine);
    all_ok = all_ok && result.ok();
    if (options.json) {
      files.push_back(toJson(file, result, capacity));
      continue;
    }
    for (const scenario::Mistake& mistake : result.mistakes) {
      std::cout << mistake.toString() << '\n';
    }
    if (!result.ok()) continue;
    const auto& serving = result.scenario->workload.serving;
    const std::string trace = serving ? serving->traceTold : "";
    std::cout << printable(file + ": ok" + (trace.empty() ? "" : " (" + trace + ")")) << '\n';
    std::cerr << result.scenario->name << ": " << run::inWords(run::estimateJob(*result.scenario))
              << '\n';
    for (const std::string& warning : warningsOf(*result.scenario, capacity)) {
      std::cerr << warning << '\n';
    }
  }
  if (options.json) print({{"ok", all_ok}, {"files", std::move(files)}});
  return all_ok ? kExitOk : kExitUsage;
}

}  // namespace

CLI::App* addValidateCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("validate", "Check scenario files and print every mistake");
  const auto options = std::make_shared<ValidateOptions>();
  CLI::Option* const files =
      command->add_option("FILE", options->files, "Scenario files; '-' is standard input")
          ->type_name("");
  addOverrideOption(*command, options->overrides);
  CLI::Option* const schema =
      command->add_flag("--schema", options->schema,
                        "Print the JSON Schema of scenarios, for editors, and nothing else");
  addJsonFlag(*command, options->json);
  setFooter(*command, "Mistakes are printed as FILE:LINE:COLUMN: what is wrong.",
            {"faultline validate scenarios/quickstart.yaml",
             "faultline validate --set faults.0.duration=2s scenarios/quickstart.yaml",
             fmt::format("faultline init --fault {} | faultline validate -",
                         injector::firstFaultKind(&injector::FaultKind::slows).name)},
            "0 all files are right, 2 a mistake");
  command->callback([options, files, schema, &exit_code] {
    if (files->empty() && schema->empty()) throw CLI::RequiredError("FILE");
    exit_code = validate(*options);
  });
  return command;
}

}  // namespace faultline::cli
