#include "resilient_ccl/comm/communicator.h"

#include <numeric>

#include "resilient_ccl/comm/communicator_impl.h"
#include "resilient_ccl/comm/engine.h"
#include "resilient_ccl/comm/link_measurement.h"
#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::comm {

using schedule::Collective;

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
  if (options.planned && options.written != nullptr) {
    return errorf(Code::kInvalidArgument,
                  "a schedule that is written down ({}) leaves nothing to plan",
                  options.written->algorithm());
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
                        .rails = static_cast<int>(options.fabric.nics.size()),
                        .segments = options.segments,
                        .slice = options.sliceBytes};
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
