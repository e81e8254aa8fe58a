#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "resilient_ccl/fabric/triangulation.h"

namespace faultline::test {

struct WitnessOutcome {
  std::vector<std::string> problems;  ///< none: all is well
  std::map<channel::Where, std::uint64_t> places;
  std::map<channel::Reach, std::uint64_t> sought;

  WitnessOutcome& operator+=(const WitnessOutcome& other);
};

/// Three to five processes that ask each other where a rail is broken, in a network of one seed:
/// NICs that are dead, paths between two that are dead (of each process one at most: two would
/// look like its NIC), two without any path to each other, processes that are stopped, notes that
/// come late or never. Judged by one who knows what is broken:
///
/// - each question is answered once, and in time;
/// - a NIC is blamed only when it is dead, "between" is said only when neither NIC is;
/// - with one witness whose NIC, paths and notes are whole, the place is the right one;
/// - whether others hear a process is told rightly with a witness who can, and whose notes arrive.
/// is.
WitnessOutcome playWitnesses(std::uint64_t seed);

}  // namespace faultline::test
