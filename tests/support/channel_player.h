#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/channel_referee.h"
#include "tests/support/channel_script.h"

namespace faultline::test {

struct Outcome {
  std::vector<std::string> problems;  ///< none: all is well
  Coverage coverage;
  std::deque<std::string> trace;  ///< with SimOptions::trace
};

/// Runs a script and judges what it sees:
///
/// - every message arrives once and whole, every note once, memory given back stays untouched;
/// - of a failed rail no more than its window goes again, and no more twice than the tail budget;
/// - a rail is given up only if it has been broken since it was opened, and then both ends know
///   within a round trip;
/// - a rail is opened again only when its path has carried something since, and a rail that flaps
///   not before its hold-off; once nothing is broken any more all rails come back, work, and the
///   link falls silent;
/// - one clean fault is named rightly;
/// - when nothing can be saved, each end says so within its budget; otherwise none gives up.
Outcome play(const Script& script);

/// The shortest script that `fails` still, by leaving out one thing after the other.
Script shrink(Script script, const std::function<bool(const Script&)>& fails);

}  // namespace faultline::test
