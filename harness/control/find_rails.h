#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "harness/control/interrupt.h"
#include "harness/scenario/scenario.h"

namespace faultline::run {

/// Where a cluster's rails are there already (site::Kind::findsRails), looks what there is: makes
/// the cluster once, before any run, and takes it down. The scenario then says how many rails there
/// are and what they carry; what was chosen, and why, is said line by line. Of other kinds nothing
/// is done.
Status findRails(scenario::Scenario& scenario, Interrupt& interrupt,
                 const std::function<void(const std::string& line)>& say);

}  // namespace faultline::run
