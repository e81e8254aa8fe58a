#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace faultline::scenario {

inline std::string fileText(const std::string& path) {
  std::ifstream file(std::string(FAULTLINE_SOURCE_DIR) + "/" + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The scenario that the repository ships and the contract shows.
inline std::string quickstart() { return fileText("scenarios/quickstart.yaml"); }

/// The shortest scenario there is, with `more` after it.
inline std::string minimal(const std::string& more = "") {
  return "version: 1\nname: small\nworkload: {kind: training}\nstrategies: [fault_free, "
         "hot_repair]\n" +
         more;
}

}  // namespace faultline::scenario
