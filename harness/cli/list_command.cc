#include "harness/cli/list_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/printable.h"
#include "base/text.h"
#include "harness/cli/catalogue.h"
#include "harness/cli/cli.h"
#include "harness/cli/output.h"

namespace faultline::cli {
namespace {

constexpr const char* kListVerb = "list";

/// Names that are longer stand on a line of their own.
constexpr std::size_t kWidestName = 28;
constexpr std::size_t kListIndent = 2;

/// What somebody who has never run anything runs, in this order.
constexpr std::array<std::string_view, 5> kStartHere{
    "quickstart", "training-data-parallel", "planned-half", "inference-tensor", "command-iperf3"};

struct ListOptions {
  std::string category;
  bool json = false;
};

std::size_t nameWidth(const std::vector<Item>& items) {
  std::size_t width = 0;
  for (const Item& item : items) {
    if (item.name.size() <= kWidestName) width = std::max(width, item.name.size());
  }
  return width;
}

std::string itemText(const Item& item, std::size_t width) {
  const std::size_t indent = kListIndent + width + 2;
  std::string text = item.summary;
  if (!item.file.empty()) text += " [" + item.file + "]";
  if (!item.unproven.empty()) text += " Unproven: " + item.unproven + ".";
  std::string start = std::string(kListIndent, ' ') + item.name;
  if (start.size() + 2 > indent) {
    start += "\n" + std::string(indent, ' ');
  } else {
    start.resize(indent, ' ');
  }
  return start + wrapText(printable(text), indent) + "\n";
}

std::string folderOf(const Item& item) {
  return std::filesystem::path(item.file).parent_path().string();
}

/// Each with its sentence; scenarios by folder, the outermost first.
std::string wholeText(const Category& category) {
  std::string text = fmt::format("{}\n", category.name);
  if (category.items.empty()) return text + "  none found\n";
  const std::size_t width = nameWidth(category.items);
  std::vector<Item> items = category.items;
  std::ranges::stable_sort(items, {}, folderOf);
  std::string folder;
  for (const Item& item : items) {
    if (const std::string its = folderOf(item); its != folder) {
      folder = its;
      text += fmt::format("\n{}\n", folder);
    }
    text += itemText(item, width);
  }
  if (category.name == "scenarios") {
    text += fmt::format("\nstart here: {}\n", join(kStartHere, ", "));
  }
  return text;
}

/// Only the names, which fit a screen together with those of all other categories.
std::string namesText(const Category& category) {
  std::vector<std::string_view> names;
  for (const Item& item : category.items) names.push_back(item.name);
  const std::string head = fmt::format("{} ({})", category.name, names.size());
  constexpr std::size_t kHead = 17;
  std::string line = head + std::string(kHead > head.size() ? kHead - head.size() : 1, ' ');
  if (category.name != "scenarios" && category.name != "metrics") {
    return line + wrapText(join(names, " "), kHead) + "\n";
  }
  // Too many: those with which to begin, or what they begin with.
  std::vector<std::string_view> some;
  for (const std::string_view name : names) {
    const std::string_view beginning = name.substr(0, name.find_first_of(".<"));
    const bool wanted = category.name == "metrics" || std::ranges::count(kStartHere, name) > 0;
    if (wanted && (some.empty() || some.back() != beginning)) some.push_back(beginning);
  }
  if (category.name == "scenarios") {
    return line + (some.empty() ? "none found\n"
                                : wrapText("start here: " + join(some, " "), kHead) + "\n");
  }
  return line + wrapText(join(some, " "), kHead) + "\n";
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

int list(const ListOptions& options) {
  const std::vector<std::string> names = categoryNames();
  if (!options.category.empty() && std::ranges::count(names, options.category) == 0) {
    const std::vector<std::string_view> known(names.begin(), names.end());
    return fail(kListVerb,
                errorf(Code::kInvalidArgument, "there is no list of '{}'{}", options.category,
                       suggestion(options.category, known)),
                kExitUsage);
  }
  Json json = Json::object();
  for (const Category& category : catalogue()) {
    if (!options.category.empty() && options.category != category.name) continue;
    if (options.json) {
      json[std::string(category.name)] = toJson(category);
    } else if (options.category.empty()) {
      std::cout << namesText(category);
    } else {
      std::cout << wholeText(category);
    }
  }
  if (options.json) {
    print(json);
  } else if (options.category.empty()) {
    std::cout << "\n'faultline list faults' says what each of one kind is, 'faultline describe "
                 "NAME' everything\nabout one; 'faultline init' writes a scenario of your own\n";
  }
  return kExitOk;
}

}  // namespace

CLI::App* addListCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      kListVerb, "List what there is: scenarios, faults, strategies, metrics, ...");
  const auto options = std::make_shared<ListOptions>();
  const std::vector<std::string> names = categoryNames();
  const std::vector<std::string_view> known(names.begin(), names.end());
  command
      ->add_option("WHAT", options->category,
                   fmt::format("One of {}; the names of all if not given", join(known, ", ")))
      ->type_name("");
  addJsonFlag(*command, options->json);
  setFooter(*command, "",
            {"faultline list", "faultline list faults", "faultline list scenarios",
             "faultline list metrics"},
            kLookingExitCodes);
  command->callback([options, &exit_code] { exit_code = list(*options); });
  return command;
}

}  // namespace faultline::cli
