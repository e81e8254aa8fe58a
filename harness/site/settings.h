#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/parameter.h"

namespace faultline::site {

/// A key of `cluster` that a kind adds to those of all.
struct Setting {
  ParameterSpec spec;
  bool list = false;  ///< one value as `spec` says, or a list of such
};

/// What these keys say, as texts; those that are left out have their default, or are absent.
using Settings = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Which interfaces are the rails, where a kind finds them (Kind::findsRails). Nothing set: so many
/// as `rails` says, chosen by the kind.
struct RailChoice {
  bool automatic = false;                                    ///< also how many is the kind's choice
  std::vector<std::string> names{};                          ///< on all nodes
  std::map<std::string, std::vector<std::string>> byNode{};  ///< or by the names of nodes
  bool operator==(const RailChoice&) const = default;
};

}  // namespace faultline::site
