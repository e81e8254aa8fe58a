#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/recorded_run.h"
#include "reports/result.h"

namespace faultline::run {

/// What results depend on, looked up now: kernel, processor, versions of the program and of what it
/// stands on, TCP settings, and the shared objects that are really mapped into this process.
/// `cluster` is site::Cluster::describe(), empty before there was one: its TCP settings are those
/// of the nodes and win over this process's own. What cannot be read stays empty.
reports::Environment describeEnvironment(const std::map<std::string, std::string>& cluster);

/// The model name in the text of /proc/cpuinfo, or, where it has none (ARM), the architecture.
/// Pure.
std::string cpuModel(std::string_view cpuinfo, std::string_view architecture);

/// What the GPUs are, "4 x NVIDIA H200, driver 580.159.04", of the texts of
/// /proc/driver/nvidia/gpus/*/information and of /proc/driver/nvidia/version; null without GPUs.
/// Those without a model (the driver's "Unknown") count as such, and a version that says none is
/// left out. Pure.
std::optional<std::string> gpuModels(std::span<const std::string> informations,
                                     std::string_view version);

/// The versions in lines "... NCCL version 2.28.3 ..." of what a program printed, sorted, each
/// once: NCCL itself prints it (NCCL_DEBUG=VERSION), nccl_bench and the programs of scenarios/gpu
/// do. Pure.
std::set<std::string> ncclVersionsTold(std::string_view printed);

/// Those that the processes of the runs printed first, with commas between, where a command was
/// run; null: none did. `folder`: of the result.
std::optional<std::string> ncclVersionOf(std::span<const RecordedRun> runs,
                                         const std::string& folder);

/// Paths of the shared objects in the text of /proc/self/maps, sorted, each once. Pure.
std::vector<std::string> loadedLibraries(std::string_view maps);

}  // namespace faultline::run
