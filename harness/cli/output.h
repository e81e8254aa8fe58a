#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// What the verbs share: data goes to stdout, in one of two forms.
namespace faultline::cli {

using Json = nlohmann::ordered_json;

/// Prints a document on stdout. Bytes that are not UTF-8 (of file names) are replaced, not fatal.
void print(const Json& json);

/// Every verb's `--json`.
void addJsonFlag(CLI::App& command, bool& json);

/// `--set path=value`, once for each override.
void addOverrideOption(CLI::App& command, std::vector<std::string>& overrides);

}  // namespace faultline::cli
