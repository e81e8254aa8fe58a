#include "harness/scenario/vocabulary.h"

#include <array>
#include <vector>

#include "harness/site/kinds/kinds.h"

namespace faultline::scenario {
namespace {

constexpr std::array<std::string_view, 2> kPlannedClusters{"host", "sim"};

}  // namespace

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
