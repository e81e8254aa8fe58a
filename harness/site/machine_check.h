#pragma once

#include <string>

namespace faultline::site {

/// Something that is wanted of this machine, and whether it is there: a row of `faultline doctor`.
struct MachineCheck {
  std::string group;
  std::string name;
  bool ok = false;
  bool required = false;  ///< the quick start cannot run without it
  std::string found;      ///< what is there, or what happened when it was tried
  std::string neededFor;
  std::string cost;    ///< of not having it
  std::string remedy;  ///< what to do when it is missing
};

}  // namespace faultline::site
