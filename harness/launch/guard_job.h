#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"

namespace faultline::launch {

/// A program that is not ours, as one node's guard starts it.
struct GuardedProgram {
  std::string executable;              ///< path
  std::vector<std::string> arguments;  ///< arguments[0] is the program's own name, as usual
  /// In addition to the guard's environment, or instead of what is there by that name.
  std::map<std::string, std::string> environment;
  std::string working_directory;  ///< empty: the guard's
  std::string stdout_path;        ///< file that what it prints goes to; emptied first
  std::string stderr_path;
};

/// First message to a guard: what to start, and where.
struct GuardJob {
  /// File of the network namespace in which the programs run; the guard itself stays outside, so
  /// that what strikes the node's processes does not strike it. Empty: the guard's own.
  std::string network_namespace;
  /// Bytes of each file: what a program prints beyond that is read and thrown away.
  std::int64_t output_limit = 0;
  std::vector<GuardedProgram> programs;
};

nlohmann::json toJson(const GuardJob& job);
/// kInvalidArgument when something is missing.
Result<GuardJob> guardJobFromJson(const nlohmann::json& json);

}  // namespace faultline::launch
