#include "resilient_ccl/comm/executor.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace faultline::comm {

using schedule::OpKind;
using schedule::Piece;
using Step = Program::Step;

Executor::Executor(Job job, MessagePort& port, Reducer& reducer, StagingPool& staging,
                   std::uint32_t tag)
    : job_(std::move(job)),
      port_(port),
      reducer_(reducer),
      staging_(staging),
      tag_(static_cast<std::uint64_t>(tag) << 32),
      elementSize_(reduction::sizeOf(job_.type)),
      sliceElements_(staging.blockBytes() / elementSize_),
      wide_(reduction::isHalf(job_.type) && job_.op != ReduceOp::kMin && job_.op != ReduceOp::kMax),
      lanes_(job_.program->lanes().size()) {
  assert(job_.window >= 1 && sliceElements_ >= 1);
  const auto& lanes = job_.program->lanes();
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    Lane& state = lanes_[lane];
    state.steps.resize(lanes[lane].steps.size());
    std::int64_t slices = 0;
    for (std::size_t i = 0; i < state.steps.size(); ++i) {
      StepState& step = state.steps[i];
      step.firstSlice = slices;
      step.slices = (lanes[lane].steps[i].piece.count + sliceElements_ - 1) / sliceElements_;
      slices += step.slices;
    }
    state.done.resize(slices);
    state.submitted.resize(slices);
    open_ += std::ssize(state.steps);
  }
  sequences_.resize(lanes.size() * job_.program->ranks() * 2);
  if (wide_) wideSums_.resize(job_.program->chains());
}

namespace {

Piece common(const Piece& a, const Piece& b) {
  const std::int64_t first = std::max(a.offset, b.offset);
  return {first, std::max<std::int64_t>(
                     0, std::min(a.count - (first - a.offset), b.count - (first - b.offset)))};
}

/// What of a piece the source holds, to where `base` has element `first`.
void copyTo(std::byte* base, std::int64_t first, const Piece& wanted, const Executor::Job& job) {
  const Piece piece = common(wanted, job.given);
  if (piece.count == 0) return;
  const Bytes size = reduction::sizeOf(job.type);
  const auto* const from =
      static_cast<const std::byte*>(job.source) + (piece.offset - job.given.offset) * size;
  std::byte* const to = base + (piece.offset - first) * size;
  if (from != to) std::memcpy(to, from, piece.count * size);
}

void copyToTarget(const Piece& piece, const Executor::Job& job) {
  const Piece kept = common(piece, job.written);
  if (kept.count == 0) return;
  copyTo(static_cast<std::byte*>(job.target), job.written.offset, kept, job);
}

}  // namespace

void Executor::copySource(const Job& job) {
  if (job.program->readsSource()) {
    for (const Piece& piece : job.program->untouched()) copyToTarget(piece, job);
    return;
  }
  const Piece all{0, job.program->elements()};
  copyToTarget(all, job);
  if (job.scratch == nullptr) return;
  const std::int64_t end = job.written.offset + std::min(job.written.count, all.count);
  copyTo(job.scratch.get(), 0, {0, job.written.offset}, job);
  copyTo(job.scratch.get(), 0, {end, std::max<std::int64_t>(0, all.count - end)}, job);
}

void Executor::copyShared(const Job& job) { copyToTarget(job.given, job); }

void Executor::start() { advanceAll(); }

// --- what may go on ---

void Executor::advance(int lane) {
  if (job_.program->lanesWait()) return advanceAll();
  while (advanceOne(lane)) {
  }
}

void Executor::advanceAll() {
  for (bool moved = true; moved;) {
    moved = false;
    for (int lane = 0; lane < std::ssize(lanes_); ++lane) {
      while (advanceOne(lane)) moved = true;
    }
  }
}

/// True when something was done at once, so that more may be possible.
bool Executor::advanceOne(int laneNumber) {
  Lane& lane = lanes_[laneNumber];
  bool moved = submitHeld(laneNumber);
  while (lane.next < std::ssize(lane.steps)) {
    const Step& step = stepOf(laneNumber, lane.next);
    if (!waitsHold(step)) break;
    if (step.kind == OpKind::kCopy && !mayGo(laneNumber, lane.next, 0, false)) break;
    const std::int64_t index = lane.next++;
    if (step.kind != OpKind::kCopy && step.piece.count > 0) continue;
    if (step.kind == OpKind::kCopy) copy(laneNumber, index);
    stepDone(laneNumber, index);
    moved = true;
  }
  postSends(laneNumber);
  postReceives(laneNumber);
  return moved;
}

bool Executor::waitsHold(const Step& step) const {
  return std::all_of(
      step.waits.begin(), step.waits.begin() + step.waitCount, [&](const schedule::Wait& wait) {
        const StepState& state = lanes_[wait.lane].steps[wait.op];
        return state.contiguous >= state.slices || state.contiguous * sliceElements_ >= wait.count;
      });
}

bool Executor::wholeDone(int lane, std::int64_t step) const {
  const StepState& state = lanes_[lane].steps[step];
  return state.doneSlices == state.slices && step < lanes_[lane].next;
}

bool Executor::mayGo(int laneNumber, std::int64_t index, std::int64_t slice,
                     bool submittedCounts) const {
  const Lane& lane = lanes_[laneNumber];
  const Program::Lane& program = job_.program->lanes()[laneNumber];
  const Step& step = program.steps[index];
  for (int i = 0; i < step.hazardCount; ++i) {
    const Program::Hazard& hazard = program.hazards[step.firstHazard + i];
    const StepState& other = lane.steps[hazard.step];
    const bool reduces = program.steps[hazard.step].kind == OpKind::kRecvReduce;
    if (!hazard.sameSlices) {
      if (!wholeDone(laneNumber, hazard.step)) return false;
      continue;
    }
    const auto& slices = submittedCounts && reduces ? lane.submitted : lane.done;
    if (!slices[other.firstSlice + slice]) return false;
  }
  return true;
}

void Executor::copy(int laneNumber, std::int64_t index) {
  const Step& step = stepOf(laneNumber, index);
  if (step.piece.count == 0) return;
  std::memmove(target(step.piece.offset), input(step, step.source.offset),
               step.piece.count * elementSize_);
  Lane& lane = lanes_[laneNumber];
  StepState& state = lane.steps[index];
  const auto first = lane.done.begin() + state.firstSlice;
  std::fill(first, first + state.slices, true);
  state.contiguous = state.doneSlices = state.slices;
}

// --- messages ---

Piece Executor::sliceOf(const Piece& piece, std::int64_t slice) const {
  const std::int64_t first = slice * sliceElements_;
  return {piece.offset + first, std::min(sliceElements_, piece.count - first)};
}

channel::MessageKey Executor::nextKey(int lane, int peer, bool send) {
  // Both ends count the messages of a lane between them, per direction, in the schedule's order.
  const std::size_t counter =
      (static_cast<std::size_t>(lane) * job_.program->ranks() + peer) * 2 + (send ? 1 : 0);
  return {.communicator = job_.communicator,
          .sequence = sequences_[counter]++,
          .stream = (job_.number << kLaneBits) | static_cast<std::uint64_t>(lane)};
}

std::uint32_t Executor::newPending(int lane, std::int64_t step, Queue& queue) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(pending_.size()));
    pending_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Pending& pending = pending_[index];
  pending.lane = lane;
  pending.step = step;
  pending.slice = queue.slice++;
  ++queue.open;
  return index;
}

/// The step whose next slice is to be posted, or -1: `order` is done as far as its steps have
/// begun, or the window is full.
inline std::int64_t Executor::nextToPost(const Lane& lane, const std::vector<std::int64_t>& order,
                                         int window, Queue& queue) {
  for (; queue.step < order.size() && order[queue.step] < lane.next; ++queue.step) {
    const std::int64_t step = order[queue.step];
    if (queue.slice < lane.steps[step].slices) return queue.open < window ? step : -1;
    queue.slice = 0;
  }
  return -1;
}

void Executor::postSends(int laneNumber) {
  Lane& lane = lanes_[laneNumber];
  const Program::Lane& program = job_.program->lanes()[laneNumber];
  Queue& queue = lane.sends;
  const int window = job_.window * program.sendPeers;
  std::int64_t index = 0;
  while ((index = nextToPost(lane, program.sends, window, queue)) >= 0 &&
         mayGo(laneNumber, index, queue.slice, false)) {
    const Step& step = program.steps[index];
    const Piece piece = sliceOf(step.piece, queue.slice);
    const std::uint32_t pending = newPending(laneNumber, index, queue);
    port_.postSend(step.peer, nextKey(laneNumber, step.peer, true), input(step, piece.offset),
                   piece.count * elementSize_, tag_ | pending);
  }
}

void Executor::postReceives(int laneNumber) {
  Lane& lane = lanes_[laneNumber];
  const Program::Lane& program = job_.program->lanes()[laneNumber];
  Queue& queue = lane.receives;
  const int window = job_.window * program.receivePeers;
  std::int64_t index = 0;
  while ((index = nextToPost(lane, program.receives, window, queue)) >= 0) {
    const Step& step = program.steps[index];
    const bool reduces = step.kind == OpKind::kRecvReduce;
    // What is reduced waits for others when it has arrived, in its staging memory.
    if (!reduces && !mayGo(laneNumber, index, queue.slice, false)) break;
    const Piece piece = sliceOf(step.piece, queue.slice);
    const std::uint32_t pending = newPending(laneNumber, index, queue);
    std::byte* place = target(piece.offset);
    if (reduces) {
      pending_[pending].staging = staging_.take();
      place = pending_[pending].staging.get();
    }
    port_.postReceive(step.peer, nextKey(laneNumber, step.peer, false), place,
                      piece.count * elementSize_, tag_ | pending);
  }
}

// --- completions ---

void Executor::messageDone(std::uint64_t token) {
  const auto index = static_cast<std::uint32_t>(token);
  const int lane = pending_[index].lane;
  if (pending_[index].staging) {
    lanes_[lane].held.push_back(index);
  } else {
    sliceDone(index);
  }
  advance(lane);
}

bool Executor::submitHeld(int laneNumber) {
  Lane& lane = lanes_[laneNumber];
  bool submitted = false;
  for (std::size_t i = 0; i < lane.held.size();) {
    const std::uint32_t index = lane.held[i];
    if (!mayGo(laneNumber, pending_[index].step, pending_[index].slice, true)) {
      ++i;
      continue;
    }
    lane.held[i] = lane.held.back();
    lane.held.pop_back();
    submit(index);
    submitted = true;
  }
  return submitted;  // one that was looked at before may follow it
}

void Executor::submit(std::uint32_t index) {
  const Pending& pending = pending_[index];
  Lane& lane = lanes_[pending.lane];
  const Step& step = stepOf(pending.lane, pending.step);
  const Piece piece = sliceOf(step.piece, pending.slice);
  lane.submitted[lane.steps[pending.step].firstSlice + pending.slice] = true;
  reduction::Reduction work{.type = job_.type,
                            .op = job_.op,
                            .target = target(piece.offset),
                            .left = input(step, piece.offset),
                            .right = pending.staging.get(),
                            .count = piece.count};
  if (step.completes && job_.op == ReduceOp::kAvg) work.divisor = job_.program->ranks();
  if (wide_ && !(step.chainBegins && step.chainEnds)) {
    auto& sums = wideSums_[step.chain];
    if (!sums) sums = std::make_unique_for_overwrite<float[]>(step.piece.count);
    float* const wide = sums.get() + (piece.offset - step.piece.offset);
    work.leftIsWide = !step.chainBegins;
    work.targetIsWide = !step.chainEnds;
    if (work.leftIsWide) work.left = wide;
    if (work.targetIsWide) work.target = wide;
  }
  reducer_.submit(work, tag_ | index);
}

void Executor::reduced(std::uint64_t token) {
  const auto index = static_cast<std::uint32_t>(token);
  const int lane = pending_[index].lane;
  staging_.giveBack(std::move(pending_[index].staging));
  sliceDone(index);
  advance(lane);
}

void Executor::sliceDone(std::uint32_t index) {
  const Pending& pending = pending_[index];
  Lane& lane = lanes_[pending.lane];
  const Step& step = stepOf(pending.lane, pending.step);
  StepState& state = lane.steps[pending.step];
  lane.done[state.firstSlice + pending.slice] = true;
  while (state.contiguous < state.slices && lane.done[state.firstSlice + state.contiguous])
    ++state.contiguous;
  --(step.kind == OpKind::kSend ? lane.sends : lane.receives).open;
  free_.push_back(index);
  if (++state.doneSlices == state.slices) stepDone(pending.lane, pending.step);
}

void Executor::stepDone(int lane, std::int64_t index) {
  const Step& step = stepOf(lane, index);
  if (wide_ && step.chainEnds) wideSums_[step.chain].reset();
  --open_;
}

}  // namespace faultline::comm
