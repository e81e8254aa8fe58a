#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

namespace faultline::schedule {

/// Bandwidths of the ranks' ports per direction, as fractions of a healthy port, in (0, 1]. Both
/// vectors have one entry per rank, or none at all: then every port is healthy.
struct PortBandwidths {
  std::vector<double> send;
  std::vector<double> receive;

  PortBandwidths() = default;
  /// Equal in both directions.
  PortBandwidths(std::vector<double> both) : send(both), receive(std::move(both)) {}
  PortBandwidths(std::initializer_list<double> both) : send(both), receive(both) {}
  PortBandwidths(std::span<const double> both)
      : send(both.begin(), both.end()), receive(both.begin(), both.end()) {}
  PortBandwidths(std::vector<double> sendSide, std::vector<double> receiveSide)
      : send(std::move(sendSide)), receive(std::move(receiveSide)) {}

  /// Number of ranks; 0 where nothing is said.
  std::size_t size() const { return send.size(); }
  /// The slower direction of a rank.
  double slower(std::size_t rank) const { return std::min(send[rank], receive[rank]); }
  std::vector<double> slower() const {
    std::vector<double> all;
    for (std::size_t rank = 0; rank < size(); ++rank) all.push_back(slower(rank));
    return all;
  }
};

/// Of nodes of `ranksPerNode` ranks each: the slowest of a node's ranks, per direction.
inline PortBandwidths nodeBandwidths(const PortBandwidths& ranks, int ranksPerNode) {
  PortBandwidths nodes;
  const auto perNode = static_cast<std::size_t>(ranksPerNode);
  for (std::size_t first = 0; first < ranks.size(); first += perNode) {
    const auto slowest = [&](const std::vector<double>& side) {
      const auto begin = side.begin() + static_cast<std::ptrdiff_t>(first);
      return *std::min_element(begin, begin + ranksPerNode);
    };
    nodes.send.push_back(slowest(ranks.send));
    nodes.receive.push_back(slowest(ranks.receive));
  }
  return nodes;
}

}  // namespace faultline::schedule
