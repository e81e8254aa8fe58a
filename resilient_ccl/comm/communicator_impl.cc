#include "resilient_ccl/comm/communicator_impl.h"

#include <algorithm>

#include "resilient_ccl/comm/completions.h"
#include "resilient_ccl/comm/point_to_point.h"
#include "resilient_ccl/comm/survivors.h"
#include "resilient_ccl/plan/planner.h"
#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::comm {

using schedule::Collective;

namespace {

Status endedError() { return errorf(Code::kInvalidArgument, "the communicator has been finished"); }

}  // namespace

int Communicator::Impl::rails() const { return static_cast<int>(options_.fabric.nics.size()); }

/// Of the members of this group: the options speak of all processes.
schedule::PortBandwidths Communicator::Impl::bandwidths() const {
  const schedule::PortBandwidths& all = options_.bandwidths;
  schedule::PortBandwidths own;
  if (all.size() == 0) return own;
  for (const int member : group_->members()) {
    own.send.push_back(all.send[member]);
    own.receive.push_back(all.receive[member]);
  }
  return own;
}

/// Others of the same communicator, its barriers for example, have the usual schedules.
bool Communicator::Impl::isWritten(const CollectiveCall& call, std::int64_t elements) const {
  const schedule::ScheduleSource* const written = options_.written.get();
  return written != nullptr && written->collective() == call.collective &&
         written->root() == call.root && written->ranks() == size() &&
         schedule::fitsData(*written, elements);
}

Result<std::unique_ptr<schedule::Schedule>> Communicator::Impl::scheduleFor(
    const CollectiveCall& call, std::int64_t elements) const {
  if (isWritten(call, elements)) {
    ASSIGN_OR_RETURN(auto written, options_.written->make(elements));
    constexpr int kMostLanes = 1 << Executor::kLaneBits;
    if (written->lanes() <= kMostLanes) return written;
    return errorf(Code::kUnsupported, "{}: {} lanes are too many, {} are possible",
                  options_.written->algorithm(), written->lanes(), kMostLanes);
  }
  const std::string_view algorithm = call.collective == Collective::kAllReduce
                                         ? options_.algorithm
                                         : schedule::algorithmOf(call.collective).name;
  const int window = call.collective == Collective::kAllReduce
                         ? schedule::allReduceWindow(rails(), size() / ranksPerNode_ - 1)
                         : schedule::executionWindow(rails());
  return schedule::makeSchedule(algorithm, {.ranks = size(),
                                            .elements = elements,
                                            .segments = options_.segments,
                                            .window = window,
                                            .bandwidths = bandwidths(),
                                            .root = call.root,
                                            .ranksPerNode = ranksPerNode_});
}

Result<std::shared_ptr<const Program>> Communicator::Impl::programFor(const CollectiveCall& call,
                                                                      std::int64_t elements) {
  const std::tuple key(call.collective, elements, call.op == ReduceOp::kAvg, call.root);
  if (const auto found = programs_.find(key); found != programs_.end()) return found->second;
  ASSIGN_OR_RETURN(const std::unique_ptr<schedule::Schedule> schedule, scheduleFor(call, elements));
  if (programs_.size() >= kMostPrograms) programs_.clear();
  std::vector<std::vector<bool>> completes;
  if (call.op == ReduceOp::kAvg) {
    ASSIGN_OR_RETURN(completes, findCompletions(*schedule, rank_));
  }
  return programs_[key] = Program::compile(*schedule, rank_, completes);
}

std::shared_ptr<Work> Communicator::Impl::refused(const Status& why) {
  auto work = std::make_shared<Work>();
  work->complete(why);
  return work;
}

std::shared_ptr<Work> Communicator::Impl::submit(const CollectiveCall& call) {
  if (finished_) return refused(endedError());
  if (const Status status = checkCall(call, rank_, size()); !status.ok()) return refused(status);
  const Placement place = placementOf(call, rank_, size());
  const bool planned = group_->plan() && plan::plannable(call.collective);
  Executor::Job job{.program = nullptr,
                    .source = call.source,
                    .target = call.target,
                    .given = place.given,
                    .written = place.written,
                    .type = call.type,
                    .op = call.op,
                    .communicator = group_->id(),
                    .window = options_.window};
  if (!planned) {
    auto chosen = programFor(call, place.data);
    if (!chosen.ok()) return refused(chosen.status());
    job.program = std::move(*chosen);
  }
  job.number = nextCollective_++;
  if (place.needsScratch) {
    job.scratch = scratch_.take(place.data * reduction::sizeOf(call.type));
  }
  if (planned) return submitPlanned(call, std::move(job), place.data);
  if (!job.program->readsSource()) {
    Executor::copySource(job);
    return engine_->submit(*group_, std::move(job));
  }
  // What the network does not touch can be copied while it works.
  std::shared_ptr<Work> work = engine_->submit(*group_, job);
  Executor::copySource(job);
  return work;
}

/// Its plan is not known yet, and so not what could be left where it is. All of an AllReduce may
/// be, so that it is looked at when the plan is there (Engine::beginHeld); a rank alone copies it
/// all.
std::shared_ptr<Work> Communicator::Impl::submitPlanned(const CollectiveCall& call,
                                                        Executor::Job job, std::int64_t elements) {
  const bool reducesAll = call.collective == Collective::kAllReduce;
  if (!reducesAll || size() == 1) Executor::copyShared(job);
  if (reducesAll && size() == 1) job.source = job.target;
  return engine_->submit(*group_, std::move(job),
                         PlanKey{.elements = elements,
                                 .elementSize = reduction::sizeOf(call.type),
                                 .average = call.op == ReduceOp::kAvg,
                                 .collective = call.collective,
                                 .root = call.root});
}

std::shared_ptr<Work> Communicator::Impl::submit(schedule::OpKind kind, void* memory,
                                                 std::int64_t count, DataType type, int peer) {
  if (finished_) return refused(endedError());
  if (peer < 0 || peer >= size() || peer == rank_) {
    return refused(errorf(Code::kInvalidArgument,
                          "rank {} of {} cannot exchange a message with rank {}", rank_, size(),
                          peer));
  }
  if (const Status status = checkType(type, "a message"); !status.ok()) return refused(status);
  if (count < 0 || (memory == nullptr && count > 0)) {
    return refused(errorf(Code::kInvalidArgument, "a message of {} elements{}", count,
                          memory == nullptr ? " without memory" : ""));
  }
  return engine_->submit(*group_, {.program = pointToPoint(kind, size(), peer, count),
                                   .source = memory,
                                   .target = memory,
                                   .type = type,
                                   .communicator = group_->id(),
                                   .number = pointToPointNumber(messages_[{kind, peer}]++),
                                   .window = options_.window});
}

std::shared_ptr<Work> Communicator::Impl::barrier() {
  // A reduction in which every rank's element is needed for everybody's result.
  std::int32_t* const element = &group_->barrierElement();
  return submit({.source = element,
                 .target = element,
                 .count = 1,
                 .type = DataType::kI32,
                 .op = ReduceOp::kMax});
}

Result<std::unique_ptr<Communicator::Impl>> Communicator::Impl::split(int color, int key) {
  // Everybody's color, key and first free number, gathered as a sum with zeros.
  struct Wish {
    std::int64_t color, key, number;
  };
  constexpr int kWords = sizeof(Wish) / sizeof(std::int64_t);
  std::vector<Wish> wishes(size());
  wishes[rank_] = {color, key, engine_->nextGroup()};
  RETURN_IF_ERROR(submit({.source = wishes.data(),
                          .target = wishes.data(),
                          .count = std::ssize(wishes) * kWords,
                          .type = DataType::kI64})
                      ->wait());
  // Free at everybody; two groups of different colors share it, and no process.
  std::int64_t number = 0;
  for (const Wish& wish : wishes) number = std::max(number, wish.number);
  engine_->used(static_cast<std::uint32_t>(number));
  if (color < 0) return std::unique_ptr<Impl>();

  std::vector<int> ranks;  // of this communicator, in the order of the new one
  for (int rank = 0; rank < size(); ++rank) {
    if (wishes[rank].color == color) ranks.push_back(rank);
  }
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return wishes[rank].key; });
  const auto own = std::ranges::find(ranks, rank_) - ranks.begin();
  std::vector<int> members;
  for (const int rank : ranks) members.push_back(group_->members()[rank]);
  std::optional<PlanSettings> plan = group_->plan();
  if (plan) plan->ranksPerNode = engine_->ranksPerNode(members);
  return std::make_unique<Impl>(
      engine_,
      engine_->addGroup(static_cast<std::uint32_t>(number), std::move(members), std::move(plan)),
      static_cast<int>(own), options_);
}

Result<std::shared_ptr<Engine>> Communicator::Impl::shrink(Duration patience,
                                                           CommunicatorOptions& options,
                                                           std::vector<int>& survivors) {
  if (group_->id() != Engine::kFirstGroup) {
    return errorf(Code::kInvalidArgument,
                  "only the first communicator of a process can shrink: its splits are made again");
  }
  if (finished_) return endedError();
  engine_->revoke(fmt::format("rank {} goes on with those that are left", rank_));
  ASSIGN_OR_RETURN(Survivors found, gatherSurvivors({.rank = rank_,
                                                     .jobKey = options_.fabric.jobKey,
                                                     .address = options_.fabric.managementAddress,
                                                     .doors = engine_->doors(),
                                                     .door = engine_->door(),
                                                     .patience = patience}));
  options = options_;
  options.health = nullptr;  // it is of all ranks
  options.size = static_cast<int>(found.ranks.size());
  options.rank =
      static_cast<int>(std::ranges::lower_bound(found.ranks, rank_) - found.ranks.begin());
  options.rendezvous = found.rendezvous;
  options.fabric.jobKey = found.jobKey;
  options.bandwidths = {};
  for (const int rank : found.ranks) {
    if (options_.bandwidths.size() == 0) break;
    options.bandwidths.send.push_back(options_.bandwidths.send[rank]);
    options.bandwidths.receive.push_back(options_.bandwidths.receive[rank]);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Engine> engine,
                   Engine::restart(options, *engine_, std::move(found.listener)));
  survivors = std::move(found.ranks);
  return engine;
}

Status Communicator::Impl::finish() {
  if (group_->id() == Engine::kFirstGroup) {
    finished_ = true;
    return engine_->finish();
  }
  const std::shared_ptr<Work> last = barrier();
  finished_ = true;
  return last->wait();
}

}  // namespace faultline::comm
