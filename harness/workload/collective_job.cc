#include <algorithm>
#include <utility>
#include <vector>

#include "harness/workload/job.h"
#include "harness/workload/poison.h"

namespace faultline::workload {
namespace {

using scenario::SweepCell;
using schedule::Collective;

/// Calls of collectives, one in an iteration: `iterations` of one cell after the other. Contributor
/// r of a result is rank r with the data of the call's key: of all ranks where the call reduces, of
/// one where it only moves. The root is rank 0.
class CollectiveJob final : public Job {
 public:
  CollectiveJob(const scenario::Workload& workload, int rank, int ranks)
      : cells_(cellsOf(workload.collective)),
        warmupsPerCell_(static_cast<std::uint64_t>(workload.warmupIterations)),
        callsPerCell_(static_cast<std::uint64_t>(workload.iterations)),
        settleCalls_(workload.collective.settleCalls),
        rank_(rank),
        ranks_(ranks) {
    Bytes largest = 0, apart = 0;
    for (const SweepCell& cell : cells_) {
      const Bytes bytes = bytesOf(cell, ranks);
      largest = std::max(largest, bytes);
      if (!cell.inPlace) apart = std::max(apart, bytes);
    }
    result_.resize(aligned(largest));
    input_.resize(aligned(apart));
  }

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
    cell_ = cells_[place];
    count_ = countOf(cell_, ranks_);
    poison(result_.data(), std::ssize(result_));
    const Part given = input();
    source_ = cell_.inPlace ? element(result_, given.first) : input_.data();
    if (given.count > 0) fillIntegers(cell_.dtype, source_, given.count, 0, key, rank_);
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

  void corruptResult(std::uint64_t seed) override {
    const Part part = output();
    if (part.count == 0) return;
    corruptOneElement(cell_.dtype, element(result_, part.first), part.count, seed);
  }

  JobCheck check(const DataKey& key) const override {
    JobCheck sum;
    const auto look = [&](const Part& part, std::int64_t firstIndex, const Contributors& from) {
      const CheckResult found = checkIntegers(cell_.dtype, element(result_, part.first), part.count,
                                              firstIndex, key, from);
      sum.wrong += found.wrong;
      sum.checked += found.checked;
    };
    const Contributors all{.firstRank = 0, .ranks = ranks_, .op = cell_.op};
    const auto block = [&](int rank) { return Part{rank * count_, count_}; };
    switch (cell_.operation) {
      case Collective::kAllReduce:
      case Collective::kReduce:
        look(output(), 0, all);
        break;
      case Collective::kReduceScatter:
        look(output(), rank_ * count_, all);
        break;
      case Collective::kBroadcast:
        look(output(), 0, {.firstRank = 0});
        break;
      case Collective::kSendRecv:
        look(output(), 0, {.firstRank = (rank_ + ranks_ - 1) % ranks_});
        break;
      case Collective::kAllGather:
        for (int rank = 0; rank < ranks_; ++rank) look(block(rank), 0, {.firstRank = rank});
        break;
      case Collective::kAllToAll:
        for (int rank = 0; rank < ranks_; ++rank) {
          look(block(rank), rank_ * count_, {.firstRank = rank});
        }
        break;
    }
    return sum;
  }

  // Every call stands for itself.
  void step() override {}
  std::span<const std::byte> state() const override { return {}; }
  bool restoreState(std::span<const std::byte> state) override { return state.empty(); }

 private:
  /// Of the buffer that a call in place works in, in elements.
  struct Part {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };

  /// Poison comes in words.
  static std::size_t aligned(Bytes bytes) {
    constexpr Bytes kWord = sizeof(kPoisonWord);
    return static_cast<std::size_t>((bytes + kWord - 1) / kWord * kWord);
  }

  bool isRoot() const { return rank_ == 0; }
  std::int64_t whole() const {
    return count_ * (scenario::hasBlocks(cell_.operation) ? ranks_ : 1);
  }
  Part own() const { return {rank_ * count_, count_}; }

  /// What the rank brings.
  Part input() const {
    if (cell_.operation == Collective::kAllGather) return own();
    if (cell_.operation == Collective::kBroadcast && !isRoot()) return {};
    return {0, whole()};
  }
  /// What it gets.
  Part output() const {
    if (cell_.operation == Collective::kReduceScatter) return own();
    if (cell_.operation == Collective::kReduce && !isRoot()) return {};
    return {0, whole()};
  }

  std::byte* element(std::vector<std::byte>& buffer, std::int64_t index) const {
    return buffer.data() + index * reduction::sizeOf(cell_.dtype);
  }
  const std::byte* element(const std::vector<std::byte>& buffer, std::int64_t index) const {
    return buffer.data() + index * reduction::sizeOf(cell_.dtype);
  }

  std::shared_ptr<comm::Work> call(comm::Communicator& communicator) {
    void* const target = element(result_, output().first);
    switch (cell_.operation) {
      case Collective::kAllReduce:
        return communicator.allReduce(source_, target, count_, cell_.dtype, cell_.op);
      case Collective::kReduceScatter:
        return communicator.reduceScatter(source_, target, count_, cell_.dtype, cell_.op);
      case Collective::kAllGather:
        return communicator.allGather(source_, target, count_, cell_.dtype);
      case Collective::kBroadcast:
        return communicator.broadcast(source_, target, count_, cell_.dtype, 0);
      case Collective::kReduce:
        return communicator.reduce(source_, target, count_, cell_.dtype, cell_.op, 0);
      case Collective::kAllToAll:
        return communicator.allToAll(source_, target, count_, cell_.dtype);
      case Collective::kSendRecv:
        break;
    }
    return communicator.sendRecv(source_, target, count_, cell_.dtype);
  }

  const std::vector<SweepCell> cells_;
  const std::uint64_t warmupsPerCell_;
  const std::uint64_t callsPerCell_;
  const int settleCalls_;
  const int rank_;
  const int ranks_;
  std::vector<std::byte> input_;
  std::vector<std::byte> result_;
  // Of the call that is prepared.
  std::pair<bool, std::uint64_t> prepared_;  // warm-up or not, place of its cell
  int settlingCalls_ = 0;                    // of that cell
  bool tried_ = false, isLast_ = false;
  SweepCell cell_;
  std::int64_t count_ = 0;
  std::byte* source_ = nullptr;
};

}  // namespace

std::unique_ptr<Job> makeCollectiveJob(const scenario::Workload& workload, int rank, int ranks) {
  return std::make_unique<CollectiveJob>(workload, rank, ranks);
}

}  // namespace faultline::workload
