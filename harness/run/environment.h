#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reports/result.h"

namespace faultline::run {

/// What results depend on, looked up now: kernel, processor, versions of the program and of what it
/// stands on, TCP settings, and the shared objects that are really mapped into this process.
/// `cluster` is NetnsCluster::describe(), empty before there was one: its TCP settings are those of
/// the nodes and win over this process's own. What cannot be read stays empty.
reports::Environment describeEnvironment(const std::map<std::string, std::string>& cluster);

/// The model name in the text of /proc/cpuinfo, or, where it has none (ARM), the architecture.
/// Pure.
std::string cpuModel(std::string_view cpuinfo, std::string_view architecture);

/// Paths of the shared objects in the text of /proc/self/maps, sorted, each once. Pure.
std::vector<std::string> loadedLibraries(std::string_view maps);

}  // namespace faultline::run
