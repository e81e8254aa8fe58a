#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "resilient_ccl/schedule/index.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// A schedule written out operation by operation, as files have it.
class OpLists final : public Schedule {
 public:
  /// Without operations; `elements` of the buffer.
  OpLists(std::string name, Collective collective, int ranks, int lanes, std::int64_t elements)
      : name_(std::move(name)),
        collective_(collective),
        ranks_(ranks),
        lanes_(lanes),
        elements_(elements),
        ops_(at(ranks) * at(lanes)) {}

  std::string_view algorithm() const override { return name_; }
  Collective collective() const override { return collective_; }
  int root() const override { return root_; }
  int ranks() const override { return ranks_; }
  int lanes() const override { return lanes_; }
  std::int64_t elements() const override { return elements_; }
  std::int64_t opCount(int rank, int lane) const override {
    return static_cast<std::int64_t>(ops_[index(rank, lane)].size());
  }
  Op op(int rank, int lane, std::int64_t i) const override {
    return ops_[index(rank, lane)][static_cast<std::size_t>(i)];
  }
  std::span<const int> layers() const override { return layers_; }

  std::vector<Op>& lane(int rank, int lane) { return ops_[index(rank, lane)]; }
  void setRoot(int root) { root_ = root; }
  void setLayers(std::vector<int> layers) { layers_ = std::move(layers); }

 private:
  std::size_t index(int rank, int lane) const { return at(rank) * at(lanes_) + at(lane); }

  std::string name_;
  Collective collective_;
  int root_ = 0;
  int ranks_;
  int lanes_;
  std::int64_t elements_;
  std::vector<int> layers_;
  std::vector<std::vector<Op>> ops_;
};

}  // namespace faultline::schedule
