#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "harness/command/command.h"

/// Numbers out of what programs print and write. Pure.
namespace faultline::command {

/// kInvalidArgument unless it is a regular expression (ECMAScript without back references and
/// look-arounds) with exactly one group.
Status checkRegex(const std::string& regex);

/// What the group holds, of every match in every line (of a long one its first
/// command::kLongestLine bytes). An error when one of them is no number.
Result<std::vector<double>> numbersIn(std::string_view text, const std::string& regex);

/// The number at `path` in a JSON document: keys and indices with dots between.
Result<double> numberAt(std::string_view json, std::string_view path);

/// The one that counts; nullopt when there is none.
std::optional<double> pick(Take take, std::span<const double> numbers);

/// Of a word of kTakeNames.
Take takeFromName(std::string_view word);
std::string_view nameOf(Take take);

}  // namespace faultline::command
