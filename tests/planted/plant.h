#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace faultline::test {

/// A bug to be planted at one place of a source. tests/planted/bugs.txt says how it is written
/// down.
struct PlantedPlace {
  std::string bug;
  std::string file;  ///< from the root of the checkout
  std::string before = {}, right = {}, after = {};
  std::string wrong = {};
};

struct PlantedBugs {
  std::vector<std::string> names;  ///< in the order of the file, each once
  std::vector<PlantedPlace> places;
};

/// Errors name the line: an unknown word, a bug without a place, a name twice, missing backticks.
Result<PlantedBugs> parsePlantedBugs(std::string_view text);

/// The copy of `file`, whose text is `source`, with all of its bugs: each is there only while
/// `planted::is` says so. Errors name the bug and the text that is not there, or there twice.
Result<std::string> plantInto(std::string_view source, const std::string& file,
                              const PlantedBugs& bugs);

/// The header that the copies include: the enumeration of the bugs, their names, and the switch.
std::string plantedHeader(const PlantedBugs& bugs);

}  // namespace faultline::test
