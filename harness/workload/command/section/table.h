#pragma once

#include <span>

#include "harness/scenario/language_table.h"

namespace faultline::scenario {

/// The key `command`, what is in it, and what each of its `metrics` has.
std::span<const Field> commandFields();
const Record& commandTable();
const Record& programMetricTable();

}  // namespace faultline::scenario
