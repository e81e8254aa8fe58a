#include "resilient_ccl/comm/executor.h"

#include <cassert>
#include <cstring>

namespace faultline::comm {

using schedule::Op;
using schedule::OpKind;
using schedule::Piece;

Executor::Executor(Job job, MessagePort& port, std::uint64_t& nextToken)
    : job_(std::move(job)),
      port_(port),
      nextToken_(nextToken),
      elementSize_(reduction::sizeOf(job_.type)),
      lanes_(job_.schedule->lanes()) {
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    const std::int64_t count = job_.schedule->opCount(job_.rank, static_cast<int>(lane));
    lanes_[lane].done.assign(count, 0);
    open_ += count;
  }
}

void Executor::start() { advance(); }

std::byte* Executor::at(const Piece& piece) const {
  return static_cast<std::byte*>(job_.buffer) + piece.offset * elementSize_;
}

bool Executor::ready(const Op& op) const {
  for (int i = 0; i < op.waitCount; ++i) {
    const schedule::Wait& wait = op.waits[i];
    if (lanes_[wait.lane].done[wait.op] < wait.count) return false;
  }
  return true;
}

void Executor::advance() {
  // A copy may make operations of other lanes ready: until nothing moves.
  for (bool moved = true; moved;) {
    moved = false;
    for (int lane = 0; lane < static_cast<int>(lanes_.size()); ++lane) {
      Lane& state = lanes_[lane];
      while (state.next < static_cast<std::int64_t>(state.done.size())) {
        const Op op = job_.schedule->op(job_.rank, lane, state.next);
        if (!ready(op)) break;
        issue(lane, state.next++, op);
        moved = true;
      }
    }
  }
}

channel::MessageKey Executor::nextKey(int lane, int peer, bool send) {
  constexpr int kLaneBits = 16;
  // Both ends count the messages of a lane between them, per direction, in the schedule's order.
  const std::uint64_t counter = (std::uint64_t(lane) << 33) | (std::uint64_t(peer) << 1) | send;
  return {.communicator = job_.communicator,
          .sequence = sequences_[counter]++,
          .stream = (job_.number << kLaneBits) | static_cast<std::uint64_t>(lane)};
}

void Executor::issue(int lane, std::int64_t index, const Op& op) {
  if (op.kind == OpKind::kCopy) {
    std::memmove(at(op.piece), at(op.source), bytesOf(op.piece));
    complete(lane, index, op);
    return;
  }
  if (op.piece.count == 0) {  // moves no message, at neither end
    complete(lane, index, op);
    return;
  }
  const std::uint64_t token = nextToken_++;
  Pending& pending = pending_[token];
  pending = {lane, index, {}};
  const Bytes bytes = bytesOf(op.piece);
  const bool sends = op.kind == OpKind::kSend;
  const channel::MessageKey key = nextKey(lane, op.peer, sends);
  if (sends) {
    port_.postSend(op.peer, key, at(op.piece), bytes, token);
    return;
  }
  std::byte* target = at(op.piece);
  if (op.kind == OpKind::kRecvReduce) {
    if (!spareStaging_.empty()) {
      pending.staging = std::move(spareStaging_.back());
      spareStaging_.pop_back();
    }
    pending.staging.resize(bytes);
    target = pending.staging.data();
  }
  port_.postReceive(op.peer, key, target, bytes, token);
}

void Executor::complete(int lane, std::int64_t index, const Op& op) {
  lanes_[lane].done[index] = op.piece.count;
  --open_;
}

bool Executor::messageDone(std::uint64_t token) {
  const auto found = pending_.find(token);
  if (found == pending_.end()) return false;
  Pending pending = std::move(found->second);
  pending_.erase(found);
  early_.push_back(std::move(pending));
  // One reduction may be what others have been waiting for: until nothing moves.
  for (std::size_t i = 0; i < early_.size();) {
    const Op op = job_.schedule->op(job_.rank, early_[i].lane, early_[i].index);
    if (!mayReduce(early_[i].lane, op)) {
      ++i;
      continue;
    }
    pending = std::move(early_[i]);
    early_[i] = std::move(early_.back());
    early_.pop_back();
    if (op.kind == OpKind::kRecvReduce) {
      reduction::reduce(job_.type, job_.op, at(op.piece), pending.staging.data(), op.piece.count);
      spareStaging_.push_back(std::move(pending.staging));
    }
    complete(pending.lane, pending.index, op);
    i = 0;
  }
  advance();
  return true;
}

bool Executor::mayReduce(int lane, const Op& op) const {
  if (op.after < 0) return true;
  // A reduction of no elements is as good as made.
  const Op first = job_.schedule->op(job_.rank, lane, op.after);
  return lanes_[lane].done[op.after] >= first.piece.count;
}

}  // namespace faultline::comm
