#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Everything that `list` lists and `describe` describes, under one roof.
namespace faultline::cli {

struct Item {
  std::string name;
  std::string summary;
  std::string file{};      ///< of scenarios: where it was found
  std::string unproven{};  ///< of faults: what of it nobody has seen work yet; empty: nothing
};

struct Category {
  std::string_view name;      ///< plural, as the user writes it: "faults"
  std::string_view singular;  ///< "fault"
  std::vector<Item> items;
};

/// All of them, in the order of categoryNames(). Scenarios are searched in ./scenarios, in the
/// source tree around the program, and where an installed program keeps them.
std::vector<Category> catalogue();

/// The names of the categories, in order.
std::vector<std::string> categoryNames();

}  // namespace faultline::cli
