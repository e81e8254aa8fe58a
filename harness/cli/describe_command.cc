#include "harness/cli/describe_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "base/printable.h"
#include "base/text.h"
#include "harness/baseline/strategy_table.h"
#include "harness/cli/catalogue.h"
#include "harness/cli/cli.h"
#include "harness/cli/model_page.h"
#include "harness/cli/output.h"
#include "harness/scenario/cluster_reader.h"
#include "harness/scenario/fault_list.h"
#include "harness/scenario/fault_process.h"
#include "harness/scenario/json.h"
#include "harness/scenario/language_table.h"
#include "harness/scenario/metric_page.h"
#include "harness/scenario/metric_table.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/schema.h"
#include "harness/scenario/workload_kind.h"
#include "harness/site/kinds/kinds.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::cli {
namespace {

/// The name under which the scenario language itself is described.
constexpr std::string_view kLanguage = "scenario";

struct DescribeOptions {
  std::string name;
  bool json = false;
};

/// One description in both forms.
struct Page {
  std::string text;
  Json json;
};

Json toJson(std::span<const ParameterSpec> specs) {
  Json parameters = Json::array();
  for (const ParameterSpec& spec : specs) {
    Json json{{"name", spec.name},
              {"type", typeName(spec.type)},
              {"required", spec.required()},
              {"default", spec.required() ? Json() : Json(spec.defaultText)},
              {"meaning", spec.meaning}};
    if (spec.bounded()) {
      json["minimum"] = formatBound(spec, spec.minimum);
      json["maximum"] = formatBound(spec, spec.maximum);
    }
    if (!spec.choices.empty()) json["choices"] = spec.choices;
    parameters.push_back(std::move(json));
  }
  return parameters;
}

Page faultPage(const injector::FaultKind& kind) {
  return {injector::describeFault(kind, site::clusterOf(site::firstKind(&site::Kind::rdmaDevices))),
          {{"name", kind.name},
           {"category", "fault"},
           {"summary", kind.summary},
           {"sees", kind.sees},
           {"evidence", kind.evidence},
           {"undo", kind.undo},
           {"unproven", kind.unproven.empty() ? Json() : Json(kind.unproven)},
           {"parameters", toJson(kind.parameters)}}};
}

Page strategyPage(const baseline::StrategySpec& strategy) {
  return {baseline::describeStrategy(strategy),
          {{"name", strategy.name},
           {"category", "strategy"},
           {"summary", strategy.summary},
           {"measures", strategy.measures},
           {"meets_faults", strategy.meetsFaults},
           {"parameters", toJson(strategy.options)}}};
}

Page workloadPage(const Item& item) {
  const scenario::WorkloadKind& kind = *scenario::findWorkloadKind(item.name);
  Json keys = Json::object();
  const Json all = scenario::scenarioSchema()["properties"]["workload"]["properties"];
  for (const auto& [key, schema] : all.items()) {
    if (scenario::hasWorkloadKey(kind, key)) keys[key] = schema;
  }
  std::string text = item.name + "\n\n" + describeRow("does", item.summary) +
                     "\nparameters (keys of 'workload')\n";
  for (const scenario::Field& field : scenario::workloadTable().fields) {
    if (!scenario::hasWorkloadKey(kind, field.spec.name)) continue;
    text += scenario::describeField(field, "  ");
  }
  return {std::move(text),
          {{"name", item.name},
           {"category", "workload"},
           {"summary", item.summary},
           {"parameters", std::move(keys)}}};
}

/// Parts of the language that one looks for by name, because the manual calls them so.
struct Part {
  std::string_view name;
  std::string_view where;  ///< what has these keys
  const scenario::Record& (*record)();
};
constexpr Part kParts[] = {
    {"fault_processes", "each element of 'fault_processes'", scenario::processTable},
    {"sequences", "each element of 'sequences'", scenario::sequenceTable},
    {"target", "'target' of a fault", scenario::targetTable},
    {"rail_group", "'target' of a fault", scenario::targetTable}};

Page partPage(const Part& part) {
  const scenario::Record& record = part.record();
  std::string summary(record.meaning);
  for (const scenario::Field& field : record.fields) {
    if (field.spec.name == part.name) summary = field.spec.meaning;  // a key of it
  }
  std::string text = fmt::format("{}\n\n", part.name) + describeRow("does", summary) +
                     fmt::format("\nkeys of {}\n", part.where);
  Json keys = Json::array();
  for (const scenario::Field& field : record.fields) {
    text += scenario::describeField(field, "  ");
    keys.push_back({{"name", field.spec.name}, {"meaning", field.spec.meaning}});
  }
  return {std::move(text),
          {{"name", part.name},
           {"category", "part of a scenario"},
           {"summary", summary},
           {"keys", std::move(keys)}}};
}

Page algorithmPage(const Item& item) {
  const std::string more =
      fmt::format("faultline schedule show --algorithm {} --ranks 4", item.name);
  return {item.name + "\n\n" + describeRow("does", item.summary) + describeRow("look at it", more),
          {{"name", item.name}, {"category", "algorithm"}, {"summary", item.summary}}};
}

std::string strategyNames(const scenario::Scenario& scenario) {
  std::vector<std::string_view> names;
  for (const auto& strategy : scenario.strategies) names.push_back(strategy.name);
  return join(names, ", ");
}

std::string workloadInWords(const scenario::Workload& workload) {
  return fmt::format("{}, {}", workload.kind->name, workload.kind->inWords(workload));
}

Page scenarioPage(const Item& item) {
  const auto result = scenario::readScenarioFile(item.file);
  if (!result.ok()) {
    std::string text = item.name + "\n\n" + describeRow("file", item.file);
    Json mistakes = Json::array();
    for (const auto& mistake : result.mistakes) {
      text += mistake.toString() + "\n";
      mistakes.push_back(mistake.toString());
    }
    return {text,
            {{"name", item.name},
             {"category", "scenario"},
             {"file", item.file},
             {"mistakes", std::move(mistakes)}}};
  }
  const scenario::Scenario& scenario = *result.scenario;
  const auto& cluster = scenario.cluster;
  std::string text =
      scenario.name + "\n\n" + describeRow("file", item.file) +
      describeRow("does", scenario.description) +
      describeRow("cluster",
                  fmt::format("{}: {} nodes x {} ranks, {}", cluster.kind->name, cluster.nodes,
                              cluster.ranksPerNode, scenario::railsInWords(cluster))) +
      describeRow("workload", workloadInWords(scenario.workload)) +
      describeRow("strategies", strategyNames(scenario));
  for (const auto& fault : scenario.faults) {
    text += describeRow("fault", inWords(fault));
  }
  for (const auto& sequence : scenario.sequences) {
    std::string kinds;
    for (const auto& fault : sequence.faults) kinds += (kinds.empty() ? "" : ", ") + fault.kind;
    text += describeRow("sequence", fmt::format("{}; {} times", kinds, sequence.repeat));
  }
  for (const auto& process : scenario.processes) {
    text += describeRow("process", inWords(process, scenario.cluster));
  }
  for (const auto& expectation : scenario.expect) text += describeRow("expects", expectation.text);
  text += describeRow("runs", fmt::format("{} blocks, seed {}", scenario.repeat, scenario.seed));
  return {std::move(text),
          {{"name", scenario.name},
           {"category", "scenario"},
           {"file", item.file},
           {"scenario", scenario::toJson(scenario)}}};
}

Page wordPage(const Item& item, std::string_view category, const std::string& used) {
  return {item.name + "\n\n" + describeRow("does", item.summary) + describeRow("used", used),
          {{"name", item.name}, {"category", category}, {"summary", item.summary}}};
}

/// A metric, or all whose paths begin with `name` and a dot.
std::optional<Page> metricPage(std::string name) {
  const std::string owner = name.substr(0, name.find('.'));
  if (baseline::findStrategy(owner) != nullptr && name.size() > owner.size()) {
    name.erase(0, owner.size() + 1);
  }
  std::vector<const scenario::Metric*> found;
  for (const bool exact : {true, false}) {
    for (const scenario::Metric& metric : scenario::metricTable()) {
      if (exact ? metric.path == name : metric.path.starts_with(name + ".")) {
        found.push_back(&metric);
      }
    }
    if (!found.empty()) break;
  }
  if (found.empty()) return std::nullopt;
  std::string text = name + "\n";
  Json list = Json::array();
  for (const scenario::Metric* metric : found) {
    text += "\n" + scenario::describeMetric(*metric);
    list.push_back({{"path", metric->path},
                    {"meaning", metric->doc},
                    {"owner", scenario::ownerWords(*metric)},
                    {"values", scenario::valueWords(*metric)}});
  }
  return Page{std::move(text),
              {{"name", name},
               {"category", "metric"},
               {"summary", found.front()->doc},
               {"metrics", std::move(list)}}};
}

/// Keys of the scenario language that are called `name`, by their last word or their whole path.
void collectKeys(const scenario::Record& record, const std::string& prefix, const std::string& name,
                 std::string& text, Json& list) {
  for (const scenario::Field& field : record.fields) {
    const std::string own = prefix + std::string(field.spec.name);
    if (own == name || field.spec.name == name) {
      text += scenario::describeField(field, prefix);
      list.push_back({{"path", own}, {"meaning", field.spec.meaning}});
    }
    if (field.record != nullptr) collectKeys(*field.record, own + ".", name, text, list);
  }
}

std::optional<Page> keyPage(const std::string& name) {
  std::string text;
  Json list = Json::array();
  collectKeys(scenario::scenarioTable(), "", name, text, list);
  if (list.empty()) return std::nullopt;
  const Json summary = list.front()["meaning"];
  return Page{fmt::format("{}\n\nkeys of a scenario\n", name) + text,
              {{"name", name},
               {"category", "key of a scenario"},
               {"summary", summary},
               {"keys", std::move(list)}}};
}

std::optional<Page> itemPage(const Category& category, const Item& item) {
  if (category.singular == "fault") return faultPage(*injector::findFaultKind(item.name));
  if (category.singular == "strategy") return strategyPage(*baseline::findStrategy(item.name));
  if (category.singular == "workload") return workloadPage(item);
  if (category.singular == "algorithm") return algorithmPage(item);
  if (category.singular == "scenario") return scenarioPage(item);
  if (category.singular == "metric") return metricPage(item.name);
  if (category.singular == "operation") {
    return wordPage(
        item, category.singular,
        fmt::format("workload: {{kind: collective, collective: {{operations: [{}]}}}}", item.name));
  }
  if (category.singular == "cluster") {
    return wordPage(item, category.singular, fmt::format("cluster: {{kind: {}}}", item.name));
  }
  if (const auto* card = model::findModel(item.name)) {
    return Page{modelText(*card), modelJson(*card)};
  }
  if (const auto* card = model::findDevice(item.name)) {
    return Page{deviceText(*card), deviceJson(*card)};
  }
  return std::nullopt;
}

/// What takes parameters: a strategy, or a kind of fault.
struct ParameterOwner {
  std::string_view name;
  std::string_view category;
  std::span<const ParameterSpec> parameters;
};

std::vector<ParameterOwner> parameterOwners() {
  std::vector<ParameterOwner> owners;
  for (const baseline::StrategySpec& strategy : baseline::strategies()) {
    owners.push_back({strategy.name, "strategy", strategy.options});
  }
  for (const injector::FaultKind& kind : injector::faultKinds()) {
    owners.push_back({kind.name, "fault", kind.parameters});
  }
  return owners;
}

/// Parameters of strategies and faults that are called so.
std::optional<Page> parameterPage(const std::string& name) {
  std::string text;
  Json list = Json::array();
  for (const ParameterOwner& owner : parameterOwners()) {
    for (const ParameterSpec& spec : owner.parameters) {
      if (spec.name != name) continue;
      text += fmt::format("\nof the {} {}\n", owner.category, owner.name) +
              describeParameters({&spec, 1});
      list.push_back({{"owner", owner.name},
                      {"owner_category", owner.category},
                      {"parameter", toJson({&spec, 1}).front()}});
    }
  }
  if (list.empty()) return std::nullopt;
  const Json summary = list.front()["parameter"]["meaning"];
  return Page{name + "\n" + text,
              {{"name", name},
               {"category", "parameter"},
               {"summary", summary},
               {"parameters", std::move(list)}}};
}

/// Everything that the name means, as one word may be several things.
std::vector<Page> find(const std::string& name) {
  std::vector<Page> pages;
  if (name == kLanguage) return {{scenario::describeScenario(), scenario::scenarioSchema()}};
  for (const Part& part : kParts) {
    if (part.name == name) pages.push_back(partPage(part));
  }
  for (const Category& category : catalogue()) {
    for (const Item& item : category.items) {
      if (item.name != name && (item.file.empty() || item.file != name)) continue;
      if (auto page = itemPage(category, item)) pages.push_back(*std::move(page));
    }
  }
  if (!pages.empty()) return pages;
  // Parts of metrics, and keys: words so common that they would stand beside everything.
  if (auto page = metricPage(name)) pages.push_back(*std::move(page));
  if (auto page = keyPage(name)) pages.push_back(*std::move(page));
  if (auto page = parameterPage(name)) pages.push_back(*std::move(page));
  return pages;
}

int unknownName(const std::string& name) {
  std::vector<std::string> all{std::string(kLanguage)};
  for (const Part& part : kParts) all.emplace_back(part.name);
  for (const Category& category : catalogue()) {
    all.emplace_back(category.name);
    for (const Item& item : category.items) {
      // Beginnings of metrics first: whoever wrote one means one.
      for (std::size_t dot = item.name.find('.');
           category.singular == "metric" && dot != std::string::npos;
           dot = item.name.find('.', dot + 1)) {
        all.push_back(item.name.substr(0, dot));
      }
      all.push_back(item.name);
    }
  }
  for (const scenario::Field& field : scenario::scenarioTable().fields) {
    all.emplace_back(field.spec.name);
  }
  for (const ParameterOwner& owner : parameterOwners()) {
    for (const ParameterSpec& spec : owner.parameters) all.emplace_back(spec.name);
  }
  const std::vector<std::string_view> known(all.begin(), all.end());
  // A metric may stand behind its strategy, as in 'expect'.
  const std::size_t dot = std::min(name.find('.'), name.size());
  const bool owned = baseline::findStrategy(name.substr(0, dot)) != nullptr && dot < name.size();
  const std::string_view closest = closestWord(owned ? name.substr(dot + 1) : name, known);
  const std::vector<std::string> categories = categoryNames();
  const bool is_category = std::ranges::count(categories, name) > 0;
  std::cerr << fmt::format("faultline describe: there is no '{}'{}\n", printableMessage(name),
                           is_category       ? fmt::format("; 'faultline list {}' shows them", name)
                           : closest.empty() ? "; 'faultline list' shows what there is"
                                             : fmt::format(" (did you mean '{}'?)", closest));
  return kExitUsage;
}

int describe(const DescribeOptions& options) {
  std::vector<Page> pages = find(options.name);
  if (pages.empty()) return unknownName(options.name);
  if (options.json) {
    Json json = pages.front().json;
    for (std::size_t i = 1; i < pages.size(); ++i) json["also"].push_back(pages[i].json);
    print(json);
    return kExitOk;
  }
  for (const Page& page : pages) {
    if (&page != &pages.front()) {
      std::cout << fmt::format("\nthe {} of that name:\n\n",
                               page.json.value("category", std::string("thing")));
    }
    std::cout << page.text;
  }
  return kExitOk;
}

}  // namespace

CLI::App* addDescribeCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand("describe", "Describe everything that a name means");
  const auto options = std::make_shared<DescribeOptions>();
  command
      ->add_option("NAME", options->name,
                   "What 'faultline list' lists, a metric of 'expect', a key of a scenario like "
                   "limits, or 'scenario': the whole language (with --json: its JSON Schema)")
      ->type_name("")
      ->required();
  addJsonFlag(*command, options->json);
  setFooter(*command, "",
            {fmt::format("faultline describe {}", injector::kUsualFault),
             "faultline describe optcc", "faultline describe failover_pause_ms",
             "faultline describe limits", "faultline describe scenario"},
            kLookingExitCodes);
  command->callback([options, &exit_code] { exit_code = describe(*options); });
  return command;
}

}  // namespace faultline::cli
