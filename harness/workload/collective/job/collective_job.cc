#include "harness/workload/collective/job/collective_job.h"

#include <utility>
#include <vector>

#include "harness/workload/collective/job/collective_buffers.h"
#include "harness/workload/data.h"

namespace faultline::workload {
namespace {

using scenario::SweepCell;
using schedule::Collective;

/// Calls of collectives, one in an iteration: `iterations` of one cell after the other.
class CollectiveJob final : public Job {
 public:
  CollectiveJob(const scenario::Workload& workload, int rank, int ranks)
      : cells_(cellsOf(workload.collective)),
        warmupsPerCell_(static_cast<std::uint64_t>(workload.warmupIterations)),
        callsPerCell_(static_cast<std::uint64_t>(workload.iterations)),
        settleCalls_(workload.collective.settleCalls),
        buffers_(cells_, rank, ranks) {}

  std::uint64_t warmups() const override { return warmupsPerCell_ * cells_.size(); }
  std::uint64_t iterations() const override { return callsPerCell_ * cells_.size(); }

  Status goOnWith(std::span<const int> /*ranks*/) override {
    return errorf(Code::kUnsupported, "a sweep of collectives is of all ranks");
  }
  void prepare(const Number& number, const DataKey& key) override {
    const auto place = number.index / (number.warmup ? warmupsPerCell_ : callsPerCell_);
    if (const std::pair now(number.warmup, place); now != prepared_) {
      prepared_ = now;
      settlingCalls_ = 0;
    }
    isLast_ = !number.warmup && (number.index + 1) % callsPerCell_ == 0;
    buffers_.prepare(cells_[place], key);
  }

  Result<IterationTime> run(comm::Communicator& communicator,
                            const std::function<void(TimePoint)>& started) override {
    started(now());
    IterationTime time;
    time.start = now();
    const std::shared_ptr<comm::Work> work = call(communicator);
    RETURN_IF_ERROR(work->wait());
    time.end = work->finished();
    tried_ = work->tried();
    return time;
  }

  /// Not after the last call of a cell that is measured: nothing would come of it.
  bool runsAgain() override { return tried_ && !isLast_ && settlingCalls_++ < settleCalls_; }

  void corruptResult(std::uint64_t seed) override { buffers_.corrupt(seed); }

  JobCheck check(const DataKey& key) const override {
    const CheckResult found = buffers_.check(key);
    return {.wrong = found.wrong, .checked = found.checked, .digest = {}};
  }

  // Every call stands for itself.
  void step() override {}
  std::span<const std::byte> state() const override { return {}; }
  bool restoreState(std::span<const std::byte> state) override { return state.empty(); }

 private:
  std::shared_ptr<comm::Work> call(comm::Communicator& communicator) {
    const SweepCell& cell = buffers_.cell();
    const std::int64_t count = buffers_.count();
    const void* const source = buffers_.source().data();
    void* const target = buffers_.target().data();
    switch (cell.operation) {
      case Collective::kAllReduce:
        return communicator.allReduce(source, target, count, cell.dtype, cell.op);
      case Collective::kReduceScatter:
        return communicator.reduceScatter(source, target, count, cell.dtype, cell.op);
      case Collective::kAllGather:
        return communicator.allGather(source, target, count, cell.dtype);
      case Collective::kBroadcast:
        return communicator.broadcast(source, target, count, cell.dtype, 0);
      case Collective::kReduce:
        return communicator.reduce(source, target, count, cell.dtype, cell.op, 0);
      case Collective::kAllToAll:
        return communicator.allToAll(source, target, count, cell.dtype);
      case Collective::kSendRecv:
        break;
    }
    return communicator.sendRecv(source, target, count, cell.dtype);
  }

  const std::vector<SweepCell> cells_;
  const std::uint64_t warmupsPerCell_;
  const std::uint64_t callsPerCell_;
  const int settleCalls_;
  CollectiveBuffers buffers_;
  // Of the call that is prepared.
  std::pair<bool, std::uint64_t> prepared_;  // warm-up or not, place of its cell
  int settlingCalls_ = 0;                    // of that cell
  bool tried_ = false, isLast_ = false;
};

}  // namespace

std::unique_ptr<Job> makeCollectiveJob(const scenario::Workload& workload, int rank, int ranks) {
  return std::make_unique<CollectiveJob>(workload, rank, ranks);
}

}  // namespace faultline::workload
