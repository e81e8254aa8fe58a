#include "harness/cli/list_command.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/printable.h"
#include "base/text.h"
#include "harness/cli/catalogue.h"
#include "harness/cli/cli.h"
#include "harness/cli/output.h"

namespace faultline::cli {
namespace {

struct ListOptions {
  std::string category;
  bool json = false;
};

void printText(const Category& category) {
  constexpr std::size_t kNameColumns = 20;
  std::cout << category.name << '\n';
  if (category.items.empty()) std::cout << "  none found\n";
  for (const Item& item : category.items) {
    std::string start = "  " + item.name + " ";
    if (start.size() < kNameColumns) start.resize(kNameColumns, ' ');
    std::string text = item.summary;
    if (!item.file.empty()) text += " [" + item.file + "]";
    if (!item.unproven.empty()) text += " Unproven: " + item.unproven + ".";
    std::cout << start << wrapText(printable(text), kNameColumns) << '\n';
  }
}

Json toJson(const Category& category) {
  Json items = Json::array();
  for (const Item& item : category.items) {
    Json json{{"name", item.name}, {"summary", item.summary}};
    if (!item.file.empty()) json["file"] = item.file;
    if (!item.unproven.empty()) json["unproven"] = item.unproven;
    items.push_back(std::move(json));
  }
  return items;
}

void listAll(const ListOptions& options) {
  Json json = Json::object();
  bool first = true;
  for (const Category& category : catalogue()) {
    if (!options.category.empty() && options.category != category.name) continue;
    if (options.json) {
      json[std::string(category.name)] = toJson(category);
      continue;
    }
    if (!first) std::cout << '\n';
    first = false;
    printText(category);
  }
  if (options.json) print(json);
}

}  // namespace

CLI::App* addListCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("list",
                         "List scenarios, faults, strategies, workloads, algorithms, models and "
                         "devices");
  const auto options = std::make_shared<ListOptions>();
  command->add_option("WHAT", options->category, "One of them; all if not given")
      ->type_name("")
      ->check(CLI::IsMember(categoryNames()));
  addJsonFlag(*command, options->json);
  command->callback([options, &exit_code] {
    listAll(*options);
    exit_code = kExitOk;
  });
  return command;
}

}  // namespace faultline::cli
