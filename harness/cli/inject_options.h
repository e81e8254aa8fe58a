#pragma once

#include <string>
#include <vector>

namespace faultline::cli {

/// The command line of `faultline inject`.
struct InjectOptions {
  std::string kind;
  std::string target;
  std::string duration;
  std::vector<std::string> parameters;
  bool list = false;
  bool json = false;
  /// Of faults of this host's own interfaces:
  bool dryRun = false;
  std::string policy;
  std::string journal;
  std::vector<std::string> keep;
};

}  // namespace faultline::cli
