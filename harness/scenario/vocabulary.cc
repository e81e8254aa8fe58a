#include "harness/scenario/vocabulary.h"

#include <array>

namespace faultline::scenario {
namespace {

constexpr std::array kClusters{
    Word{"netns", "Nodes are network namespaces of this machine, with shaped rails between them."},
    Word{"rdma_vm",
         "Nodes are guests of qemu with real verbs over soft-RoCE (rxe); for workloads of kind "
         "command."}};

constexpr std::array<std::string_view, 2> kPlannedClusters{"host", "sim"};

}  // namespace

std::span<const Word> clusterKinds() { return kClusters; }

std::span<const std::string_view> plannedWords(std::string_view path) {
  if (path == "cluster.kind") return kPlannedClusters;
  return {};
}

}  // namespace faultline::scenario
