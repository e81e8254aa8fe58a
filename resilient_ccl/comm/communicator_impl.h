#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "resilient_ccl/comm/collective_call.h"
#include "resilient_ccl/comm/communicator.h"
#include "resilient_ccl/comm/engine.h"
#include "resilient_ccl/comm/program.h"
#include "resilient_ccl/comm/scratch.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::comm {

/// What a communicator does: turns calls into jobs of its engine.
class Communicator::Impl {
 public:
  Impl(std::shared_ptr<Engine> engine, std::shared_ptr<Group> group, int rank,
       const CommunicatorOptions& options)
      : engine_(std::move(engine)),
        group_(std::move(group)),
        rank_(rank),
        ranksPerNode_(engine_->ranksPerNode(group_->members())),
        options_(options) {}
  ~Impl() { group_->close(); }

  std::shared_ptr<Work> submit(const CollectiveCall& call);
  /// `memory` is written only by a kRecv.
  std::shared_ptr<Work> submit(schedule::OpKind kind, void* memory, std::int64_t count,
                               DataType type, int peer);
  std::shared_ptr<Work> barrier();
  Result<std::unique_ptr<Impl>> split(int color, int key);
  /// The engine of those that are left, and the options of their first communicator.
  Result<std::shared_ptr<Engine>> shrink(Duration patience, CommunicatorOptions& options,
                                         std::vector<int>& survivors);
  Status finish();

  Engine& engine() const { return *engine_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(group_->members().size()); }
  int ranksPerNode() const { return ranksPerNode_; }

 private:
  /// What was made lately is kept: most jobs use few sizes over and over.
  static constexpr std::size_t kMostPrograms = 64;
  int rails() const;
  schedule::PortBandwidths bandwidths() const;
  /// Whether CommunicatorOptions::written is for this call.
  bool isWritten(const CollectiveCall& call, std::int64_t elements) const;
  Result<std::unique_ptr<schedule::Schedule>> scheduleFor(const CollectiveCall& call,
                                                          std::int64_t elements) const;
  Result<std::shared_ptr<const Program>> programFor(const CollectiveCall& call,
                                                    std::int64_t elements);
  std::shared_ptr<Work> submitPlanned(const CollectiveCall& call, Executor::Job job,
                                      std::int64_t elements);
  static std::shared_ptr<Work> refused(const Status& why);

  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Group> group_;
  const int rank_;          // in the group
  const int ranksPerNode_;  // of the group
  const CommunicatorOptions options_;
  bool finished_ = false;
  std::uint64_t nextCollective_ = 0;
  /// By collective, elements, whether it averages, and root.
  std::map<std::tuple<schedule::Collective, std::int64_t, bool, int>,
           std::shared_ptr<const Program>>
      programs_;
  ScratchPool scratch_;
  /// Messages so far to, and from, each rank.
  std::map<std::pair<schedule::OpKind, int>, std::uint64_t> messages_;
};

}  // namespace faultline::comm
