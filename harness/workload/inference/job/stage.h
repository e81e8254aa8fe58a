#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/inference/serving.h"
#include "harness/workload/data.h"
#include "harness/workload/rank_config.h"
#include "resilient_ccl/comm/communicator.h"

namespace faultline::workload {

/// What one rank does in a step: its layers, with an AllReduce of all tokens' activations among the
/// tensor ranks after attention and after the feed-forward part, between receiving them from the
/// stage before and sending them to the next one.
///
/// Computing is a timed wait, as a device would be busy. The data of a message are made and checked
/// meanwhile: a device does neither. Where that takes longer than computing, `late` has the
/// difference.
class Stage {
 public:
  struct Work {
    std::uint64_t number = 0;   ///< of the step: data of different steps differ
    std::int64_t tokens = 0;    ///< whose activations pass
    std::int64_t requests = 0;  ///< for which a token comes out
    Duration layer{};
    Duration head{};
  };
  struct Checks {
    std::int64_t wrong = 0;
    std::int64_t checked = 0;
  };

  /// Ranks `first` .. first + tensor x pipeline - 1 of the job are the instance.
  Stage(const RankConfig& config, int first);

  /// `instance` has the ranks of the instance in their order, and outlives this; `all` likewise.
  Status join(comm::Communicator& all, comm::Communicator& instance);

  /// Returns when the rank's part is done; on the first rank, when the tokens are there.
  Status run(const Work& work);

  /// What has been checked since the last call.
  Checks takeChecks() { return std::exchange(checks_, {}); }
  void count(const CheckResult& found) {
    checks_.wrong += found.wrong;
    checks_.checked += found.checked;
  }
  /// Damages one element of the next result that is checked.
  void corruptNext() { corrupt_ = true; }
  /// Does that to this result, when it is due.
  void corrupt(reduction::DataType type, void* data, std::int64_t count);
  /// Time that a step computes, on all stages together.
  Duration computing(const Work& work) const;
  /// So much later than computing would have been over was the rank, since the last call.
  Duration takeLate() { return std::exchange(late_, Duration::zero()); }
  bool isFirst() const { return place_.stage == 0 && place_.tensor == 0; }

 private:
  enum class Message { kLayer, kActivations, kTokens };
  bool isLast() const { return place_.stage == parallel_.pipeline - 1; }
  void compute(Duration time) { end_ += time; }
  void computed();
  Status await(comm::Work& work);
  Status sumOverTensor(std::int64_t index);
  Status send(Message message, int peer, reduction::DataType type, std::int64_t count);
  Status receive(Message message, int peer, reduction::DataType type, std::int64_t count);
  DataKey key() const { return {config_.seed, work_.number}; }

  const RankConfig& config_;
  const model::Training& job_;
  const model::Parallel parallel_;
  const int first_;
  const model::Place place_;
  const reduction::DataType type_;
  comm::Communicator* instance_ = nullptr;
  comm::Communicator* tensor_ = nullptr;
  std::unique_ptr<comm::Communicator> ownTensor_;  // where it is not the whole instance
  std::vector<std::byte> input_;
  std::vector<std::byte> result_;
  Work work_;
  TimePoint end_{};  // of computing so far
  Duration late_{};
  Checks checks_;
  bool corrupt_ = false;
};

}  // namespace faultline::workload
