#pragma once

#include <string>

#include "harness/scenario/metric_table.h"

/// What `faultline describe <metric>` says of one row of the table of metrics. Pure.
namespace faultline::scenario {

/// "milliseconds, or a duration like 1.5s": what it is compared with.
std::string valueWords(const Metric& metric);

/// "a strategy", "the whole result", or both.
std::string ownerWords(const Metric& metric);

/// Its paragraphs: meaning, values, whose it is, what must hold for it to count, and an example.
std::string describeMetric(const Metric& metric);

}  // namespace faultline::scenario
