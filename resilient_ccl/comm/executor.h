#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "resilient_ccl/channel/wire.h"
#include "resilient_ccl/reduction/reduce.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::comm {

using reduction::DataType;
using reduction::ReduceOp;

/// Where the executor's messages go. Completions come back through Executor::sendDone/receiveDone.
class MessagePort {
 public:
  virtual ~MessagePort() = default;
  virtual void postSend(int peer, const channel::MessageKey& key, const std::byte* data,
                        Bytes length, std::uint64_t token) = 0;
  virtual void postReceive(int peer, const channel::MessageKey& key, std::byte* region,
                           Bytes capacity, std::uint64_t token) = 0;
};

/// Runs one rank's part of a schedule over messages: issues the operations of each lane in order
/// as their waits come true, reduces what arrives, and counts what is done. Driven by its calls;
/// no thread, no clock. The order of reductions is the schedule's, whatever the network does.
class Executor {
 public:
  struct Job {
    std::shared_ptr<const schedule::Schedule> schedule;
    int rank = 0;
    void* buffer = nullptr;  ///< elements of `type`, in place
    DataType type = DataType::kF32;
    ReduceOp op = ReduceOp::kSum;
    std::uint32_t communicator = 0;
    std::uint64_t number = 0;  ///< of the collective in its communicator; equal on all ranks
  };

  /// `nextToken` hands out tokens that are unique among all users of the port.
  Executor(Job job, MessagePort& port, std::uint64_t& nextToken);

  /// Issues what can be issued. To be called once; later steps follow from completions.
  void start();
  /// A message of this executor is done; false when the token is not one of its own.
  bool messageDone(std::uint64_t token);
  bool finished() const { return open_ == 0; }

 private:
  struct Lane {
    std::int64_t next = 0;           // first operation not issued
    std::vector<std::int64_t> done;  // elements done of each operation
  };
  struct Pending {
    int lane;
    std::int64_t index;
    std::vector<std::byte> staging;  // of a recvReduce
  };

  void advance();
  bool ready(const schedule::Op& op) const;
  void issue(int lane, std::int64_t index, const schedule::Op& op);
  void complete(int lane, std::int64_t index, const schedule::Op& op);
  bool mayReduce(int lane, const schedule::Op& op) const;
  std::byte* at(const schedule::Piece& piece) const;
  Bytes bytesOf(const schedule::Piece& piece) const { return piece.count * elementSize_; }
  channel::MessageKey nextKey(int lane, int peer, bool send);

  Job job_;
  MessagePort& port_;
  std::uint64_t& nextToken_;
  Bytes elementSize_;
  std::vector<Lane> lanes_;
  std::int64_t open_ = 0;  // operations not done
  std::unordered_map<std::uint64_t, Pending> pending_;
  std::vector<Pending> early_;  // arrived before the reduction that comes first (Op::after)
  std::unordered_map<std::uint64_t, std::uint32_t> sequences_;
  std::vector<std::vector<std::byte>> spareStaging_;
};

}  // namespace faultline::comm
