#include "harness/scenario/vocabulary.h"

#include <array>
#include <vector>

#include "harness/site/kinds/kinds.h"

namespace faultline::scenario {
namespace {

constexpr std::array kWorkloads{
    Word{"training",
         "Training: iterations of compute, with a bucketed gradient AllReduce that overlaps it, or "
         "what follows from a model that is divided over the ranks; every element of every result "
         "is checked."},
    Word{"collective",
         "Collective calls, one after the other, over sizes, types, operators and places, as "
         "nccl-tests measures them; every element of every result is checked."},
    Word{
        "inference",
        "A server of a model: requests come as they like, are batched continuously, and have their "
        "latencies and goodput measured; every element of every message is checked."},
    Word{"command",
         "Any program (torchrun, nccl-tests, iperf3), on the nodes under the faults: how it ends, "
         "how fast it is, and the numbers that it tells. Its data are not checked."}};
constexpr std::array<std::string_view, 2> kPlannedClusters{"host", "sim"};

}  // namespace

std::span<const Word> workloadKinds() { return kWorkloads; }

std::span<const Word> clusterKinds() {
  static const std::vector<Word> words = [] {
    std::vector<Word> all;
    for (const site::Kind* const kind : site::kinds()) all.push_back({kind->name, kind->summary});
    return all;
  }();
  return words;
}

std::span<const std::string_view> plannedWords(std::string_view path) {
  if (path == "cluster.kind") return kPlannedClusters;
  return {};
}

}  // namespace faultline::scenario
