#pragma once

#include <span>
#include <string_view>

/// The words of the scenario language that name whole things: clusters; strategies and workloads
/// have tables of their own. Some are reserved for later versions, and are refused with a message
/// that says so.
namespace faultline::scenario {

struct Word {
  std::string_view name;
  std::string_view summary;  ///< one sentence
};

std::span<const Word> clusterKinds();

/// Words of the language that this version does not have yet, by the path of the key whose value
/// they are ("workload.kind", "cluster.kind", "strategies").
std::span<const std::string_view> plannedWords(std::string_view path);

}  // namespace faultline::scenario
