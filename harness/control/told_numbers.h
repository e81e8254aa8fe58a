#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "harness/command/command.h"
#include "reports/result.h"

namespace faultline::run {

/// By the names of the metrics.
using ToldNumbers = std::map<std::string, reports::Quantity>;

/// What the processes whose output is in `folders` (by rank) have told. An error when one of the
/// numbers is not there, or is no number: it names it.
Result<ToldNumbers> toldNumbers(const std::vector<command::Metric>& metrics,
                                const std::vector<std::string>& folders);

/// The same of processes that did not come to their end: those of the numbers that are there.
ToldNumbers toldBeforeFailure(const std::vector<command::Metric>& metrics,
                              const std::vector<std::string>& folders);

/// The last lines of a file, for people; empty when there is nothing.
std::string lastLines(const std::string& file);

}  // namespace faultline::run
