#include "resilient_ccl/comm/communicator.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <tuple>

#include "resilient_ccl/comm/collective_call.h"
#include "resilient_ccl/comm/completions.h"
#include "resilient_ccl/comm/engine.h"
#include "resilient_ccl/comm/link_measurement.h"
#include "resilient_ccl/comm/point_to_point.h"
#include "resilient_ccl/comm/program.h"
#include "resilient_ccl/comm/scratch.h"
#include "resilient_ccl/comm/survivors.h"
#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::comm {

using schedule::Collective;

namespace {

Status endedError() { return errorf(Code::kInvalidArgument, "the communicator has been finished"); }

}  // namespace

// --- Work ---

bool Work::test() const {
  const std::lock_guard lock(mutex_);
  return isDone_;
}

Status Work::wait() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return isDone_; });
  return status_;
}

TimePoint Work::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

void Work::complete(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    isDone_ = true;
    status_ = status;
    finished_ = now();
  }
  done_.notify_all();
}

// --- Communicator ---

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
  Result<std::shared_ptr<const Program>> programFor(const CollectiveCall& call,
                                                    std::int64_t elements);
  std::shared_ptr<Work> submitPlanned(const CollectiveCall& call);
  static std::shared_ptr<Work> refused(const Status& why);

  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Group> group_;
  const int rank_;          // in the group
  const int ranksPerNode_;  // of the group
  const CommunicatorOptions options_;
  bool finished_ = false;
  std::uint64_t nextCollective_ = 0;
  /// By collective, elements, whether it averages, and root.
  std::map<std::tuple<Collective, std::int64_t, bool, int>, std::shared_ptr<const Program>>
      programs_;
  ScratchPool scratch_;
  /// Messages so far to, and from, each rank.
  std::map<std::pair<schedule::OpKind, int>, std::uint64_t> messages_;
};

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

Result<std::shared_ptr<const Program>> Communicator::Impl::programFor(const CollectiveCall& call,
                                                                      std::int64_t elements) {
  const std::tuple key(call.collective, elements, call.op == ReduceOp::kAvg, call.root);
  if (const auto found = programs_.find(key); found != programs_.end()) return found->second;
  const std::string_view algorithm = call.collective == Collective::kAllReduce
                                         ? options_.algorithm
                                         : schedule::algorithmOf(call.collective).name;
  const int window = call.collective == Collective::kAllReduce
                         ? schedule::allReduceWindow(rails(), size() / ranksPerNode_ - 1)
                         : schedule::executionWindow(rails());
  ASSIGN_OR_RETURN(const std::unique_ptr<schedule::Schedule> schedule,
                   schedule::makeSchedule(algorithm, {.ranks = size(),
                                                      .elements = elements,
                                                      .segments = options_.segments,
                                                      .window = window,
                                                      .bandwidths = bandwidths(),
                                                      .root = call.root,
                                                      .ranksPerNode = ranksPerNode_}));
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
  if (group_->plan() && call.collective == Collective::kAllReduce) return submitPlanned(call);
  auto chosen = programFor(call, place.data);
  if (!chosen.ok()) return refused(chosen.status());
  Executor::Job job{.program = std::move(*chosen),
                    .source = call.source,
                    .target = call.target,
                    .given = place.given,
                    .written = place.written,
                    .type = call.type,
                    .op = call.op,
                    .communicator = group_->id(),
                    .number = nextCollective_++,
                    .window = options_.window};
  if (place.needsScratch) {
    job.scratch = scratch_.take(place.data * reduction::sizeOf(call.type));
  }
  if (!job.program->readsSource()) {
    Executor::copySource(job);
    return engine_->submit(*group_, std::move(job));
  }
  // What the network does not touch can be copied while it works.
  std::shared_ptr<Work> work = engine_->submit(*group_, job);
  Executor::copySource(job);
  return work;
}

/// Its plan is not known yet, and so not what could be left where it is: it works in place.
std::shared_ptr<Work> Communicator::Impl::submitPlanned(const CollectiveCall& call) {
  const Bytes size = reduction::sizeOf(call.type);
  if (call.source != call.target && call.count > 0) {
    std::memcpy(call.target, call.source, static_cast<std::size_t>(call.count * size));
  }
  return engine_->submit(
      *group_,
      {.program = nullptr,
       .source = call.target,
       .target = call.target,
       .type = call.type,
       .op = call.op,
       .communicator = group_->id(),
       .number = nextCollective_++,
       .window = options_.window},
      PlanKey{.elements = call.count, .elementSize = size, .average = call.op == ReduceOp::kAvg});
}

std::shared_ptr<Work> Communicator::Impl::submit(schedule::OpKind kind, void* memory,
                                                 std::int64_t count, DataType type, int peer) {
  if (finished_) return refused(endedError());
  if (peer < 0 || peer >= size() || peer == rank_) {
    return refused(errorf(Code::kInvalidArgument,
                          "rank {} of {} cannot exchange a message with rank {}", rank_, size(),
                          peer));
  }
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

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() = default;

Result<std::unique_ptr<Communicator>> Communicator::create(const CommunicatorOptions& options) {
  constexpr Bytes kLargestElement = 8;
  if (options.sliceBytes < kLargestElement || options.sliceBytes % kLargestElement != 0 ||
      options.window < 1) {
    return errorf(Code::kInvalidArgument,
                  "slices of {} bytes, {} of them at a time: a slice must be a multiple of {} "
                  "bytes, and at least one under way",
                  options.sliceBytes, options.window, kLargestElement);
  }
  const schedule::PortBandwidths& ports = options.bandwidths;
  const auto size = static_cast<std::size_t>(options.size);
  if (ports.send.size() != ports.receive.size() || (ports.size() != 0 && ports.size() != size)) {
    return errorf(Code::kInvalidArgument, "bandwidths of {} and {} ports for {} ranks",
                  ports.send.size(), ports.receive.size(), size);
  }
  if (options.collectiveTimeout <= Duration::zero()) {
    return errorf(Code::kInvalidArgument,
                  "a collective timeout of {}: it must be more than 0, for nothing waits for ever",
                  formatDuration(options.collectiveTimeout));
  }
  if (options.size > 1 && options.fabric.jobKey == auth::JobKey()) {
    return errorf(Code::kInvalidArgument,
                  "the key of the job is all zeros, which everybody knows: whoever starts its {} "
                  "processes must give them one (auth::JobKey::random)",
                  options.size);
  }
  auto engine = Engine::start(options);
  if (!engine.ok()) {
    return engine.status().withContext(fmt::format("rank {} joins the communicator", options.rank));
  }
  return firstOf(std::move(*engine), options);
}

Result<std::unique_ptr<Communicator>> Communicator::firstOf(std::shared_ptr<Engine> engine,
                                                            const CommunicatorOptions& options) {
  std::vector<int> everybody(options.size);
  std::iota(everybody.begin(), everybody.end(), 0);
  std::optional<PlanSettings> plan;
  if (options.planned) {
    ASSIGN_OR_RETURN(plan, planSettings(engine, everybody, options));
  }
  auto group = engine->addGroup(Engine::kFirstGroup, std::move(everybody), std::move(plan));
  return std::unique_ptr<Communicator>(new Communicator(
      std::make_unique<Impl>(std::move(engine), std::move(group), options.rank, options)));
}

Result<Communicator::Shrunk> Communicator::shrink(Duration patience) {
  const auto shrink = [&]() -> Result<Shrunk> {
    Shrunk shrunk;
    CommunicatorOptions options;
    ASSIGN_OR_RETURN(auto engine, impl_->shrink(patience, options, shrunk.survivors));
    ASSIGN_OR_RETURN(shrunk.communicator, firstOf(std::move(engine), options));
    return shrunk;
  };
  Result<Shrunk> shrunk = shrink();
  if (shrunk.ok()) return shrunk;
  return shrunk.status().withContext(fmt::format("rank {} of {} shrinks", rank(), size()));
}

/// What is measured goes through a communicator that exists only for it.
Result<PlanSettings> Communicator::planSettings(const std::shared_ptr<Engine>& engine,
                                                const std::vector<int>& everybody,
                                                const CommunicatorOptions& options) {
  PlanSettings settings{.link = {},
                        .algorithm = {},
                        .ranksPerNode = engine->ranksPerNode(everybody),
                        .rails = static_cast<int>(options.fabric.nics.size())};
  if (options.algorithm != CommunicatorOptions::kAnyAlgorithm) {
    settings.algorithm = options.algorithm;
    RETURN_IF_ERROR(
        schedule::makeSchedule(settings.algorithm, {.ranks = options.size,
                                                    .elements = options.size,
                                                    .ranksPerNode = settings.ranksPerNode})
            .status());
  }
  if (options.size == 1) return settings;
  constexpr std::uint32_t kNumber = Engine::kFirstGroup + 1;
  engine->used(kNumber);
  CommunicatorOptions plain = options;
  plain.algorithm = "ring";
  plain.bandwidths = {};
  Communicator probe(
      std::make_unique<Impl>(engine, engine->addGroup(kNumber, everybody), options.rank, plain));
  auto link = measureLink(probe);
  if (!link.ok()) return link.status().withContext("measure the network");
  settings.link = *link;
  return settings;
}

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key) {
  ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, impl_->split(color, key));
  if (!impl) return std::unique_ptr<Communicator>();
  return std::unique_ptr<Communicator>(new Communicator(std::move(impl)));
}

int Communicator::rank() const { return impl_->rank(); }
int Communicator::size() const { return impl_->size(); }
int Communicator::ranksPerNode() const { return impl_->ranksPerNode(); }

std::shared_ptr<Work> Communicator::allReduce(const void* source, void* target, std::int64_t count,
                                              DataType type, ReduceOp op) {
  return impl_->submit(
      {.source = source, .target = target, .count = count, .type = type, .op = op});
}

std::shared_ptr<Work> Communicator::reduceScatter(const void* source, void* target,
                                                  std::int64_t count, DataType type, ReduceOp op) {
  return impl_->submit({.collective = Collective::kReduceScatter,
                        .source = source,
                        .target = target,
                        .count = count,
                        .type = type,
                        .op = op});
}

std::shared_ptr<Work> Communicator::allGather(const void* source, void* target, std::int64_t count,
                                              DataType type) {
  return impl_->submit({.collective = Collective::kAllGather,
                        .source = source,
                        .target = target,
                        .count = count,
                        .type = type});
}

std::shared_ptr<Work> Communicator::broadcast(const void* source, void* target, std::int64_t count,
                                              DataType type, int root) {
  return impl_->submit({.collective = Collective::kBroadcast,
                        .source = source,
                        .target = target,
                        .count = count,
                        .type = type,
                        .root = root});
}

std::shared_ptr<Work> Communicator::reduce(const void* source, void* target, std::int64_t count,
                                           DataType type, ReduceOp op, int root) {
  return impl_->submit({.collective = Collective::kReduce,
                        .source = source,
                        .target = target,
                        .count = count,
                        .type = type,
                        .op = op,
                        .root = root});
}

std::shared_ptr<Work> Communicator::allToAll(const void* source, void* target, std::int64_t count,
                                             DataType type) {
  return impl_->submit({.collective = Collective::kAllToAll,
                        .source = source,
                        .target = target,
                        .count = count,
                        .type = type});
}

std::shared_ptr<Work> Communicator::sendRecv(const void* source, void* target, std::int64_t count,
                                             DataType type) {
  return impl_->submit({.collective = Collective::kSendRecv,
                        .source = source,
                        .target = target,
                        .count = count,
                        .type = type});
}

std::shared_ptr<Work> Communicator::send(const void* source, std::int64_t count, DataType type,
                                         int peer) {
  return impl_->submit(schedule::OpKind::kSend, const_cast<void*>(source), count, type, peer);
}

std::shared_ptr<Work> Communicator::receive(void* target, std::int64_t count, DataType type,
                                            int peer) {
  return impl_->submit(schedule::OpKind::kRecv, target, count, type, peer);
}

std::shared_ptr<Work> Communicator::barrier() { return impl_->barrier(); }
void Communicator::abort(const std::string& reason) { impl_->engine().abort(reason); }
Status Communicator::finish() { return impl_->finish(); }
CommunicatorEvents Communicator::events(const EventCursor& cursor) const {
  return impl_->engine().events(cursor);
}
telemetry::Trace Communicator::trace() const { return impl_->engine().trace(); }

}  // namespace faultline::comm
