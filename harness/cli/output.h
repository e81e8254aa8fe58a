#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/claimed_folder.h"
#include "base/status.h"

/// What the verbs share: data goes to stdout, in one of two forms.
namespace faultline::cli {

using Json = nlohmann::ordered_json;

/// Prints a document on stdout. Bytes that are not UTF-8 (of file names) are replaced, not fatal.
void print(const Json& json);

/// Prints text on stdout as a terminal may get it (`printable`), whatever results, files and users
/// have put into it. With `coloured` the summary's own sequences for colours stay.
void printPlain(std::string_view text, bool coloured = false);

/// Says on stderr, as text that may be printed, why `faultline VERB` cannot go on; returns `code`.
int fail(std::string_view verb, const Status& status, int code);

/// The exit code where files could not be written into a folder that the user has named: a usage
/// mistake when something that is not ours is in their way.
int exitOfWriting(const Status& status);

/// The exit code where a fault could not be done by hand, or not be taken back.
int exitOfFault(const Status& status);

/// `--force` of verbs that write files into a folder.
void addForceFlag(CLI::App& command, Earlier& earlier);

/// What stands below the options in the help of a verb, for all verbs alike: `words` (may be
/// empty), examples, and exit codes.
void setFooter(CLI::App& command, std::string_view words,
               std::initializer_list<std::string_view> examples, std::string_view exit_codes);

/// Exit codes of verbs that only look at something.
inline constexpr std::string_view kLookingExitCodes = "0 ok, 2 usage mistake";

/// Lets an option have one of these words, and says of another which was meant. `words` outlives
/// the command line.
CLI::Validator oneOf(std::span<const std::string_view> words);

/// Every verb's `--json`.
void addJsonFlag(CLI::App& command, bool& json);

/// `--set path=value`, once for each override.
void addOverrideOption(CLI::App& command, std::vector<std::string>& overrides);

}  // namespace faultline::cli
