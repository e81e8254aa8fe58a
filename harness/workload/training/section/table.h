#pragma once

#include <span>

#include "harness/scenario/language_table.h"

namespace faultline::scenario {

/// What training adds to the keys of `workload`.
std::span<const Field> trainingFields();
/// The mapping of a model, and of a device.
const Record& modelTable();
const Record& deviceTable();
/// The row behind `compute`, in both of its forms.
ParameterSpec computeSpec();

}  // namespace faultline::scenario
