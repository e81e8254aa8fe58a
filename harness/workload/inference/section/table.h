#pragma once

#include <span>

#include "harness/scenario/language_table.h"

namespace faultline::scenario {

/// The key `inference`, and what is in it.
std::span<const Field> inferenceFields();
const Record& inferenceTable();

}  // namespace faultline::scenario
