#pragma once

#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// What the kind `training` has of `workload`, in one of its two forms: `compute` and `gradient`,
/// or a model with a device, from which the two follow. Contradictions between the forms, and plans
/// that cannot be, are reported. `values` are the scalars of the whole scenario by their path
/// (RecordReader::read), `ranks` those of the cluster. `kind` of the workload must have been read.
void readTraining(const Node& root, const Parameters& values, int ranks, Workload& workload,
                  Findings& findings);

/// Of a server, which has only the model and the device: what its sizes and times follow from.
void readServedModel(const Node& root, const Parameters& values, Workload& workload,
                     Findings& findings);

}  // namespace faultline::scenario
