#pragma once

#include <span>

#include "harness/scenario/language_table.h"

namespace faultline::scenario {

/// The key `collective`, and what is in it.
std::span<const Field> collectiveFields();
const Record& collectiveTable();

}  // namespace faultline::scenario
