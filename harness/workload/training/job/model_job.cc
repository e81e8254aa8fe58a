#include "harness/workload/training/job/model_job.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "harness/model/training_program.h"
#include "harness/workload/compute.h"
#include "harness/workload/digest.h"
#include "harness/workload/poison.h"

namespace faultline::workload {
namespace {

using model::Call;
using model::Group;
using model::Operation;

constexpr std::array kAllGroups{Group::kCopies, Group::kExpertCopies, Group::kTensor,
                                Group::kExpert, Group::kPipeline,     Group::kEmbedding};
static_assert(kAllGroups.size() == model::kGroups);

/// Data of different phases are far apart.
constexpr int kPhaseBits = 44;
std::int64_t firstIndexOf(const Call& call) {
  return (static_cast<std::int64_t>(call.phase) << kPhaseBits) + call.offset;
}

/// Elements that a rank brings to a call, and gets from it.
std::int64_t inputCount(const Call& call) {
  if (call.operation == Operation::kReceive) return 0;
  return call.operation == Operation::kAllGather ? call.count : call.elements();
}
std::int64_t resultCount(const Call& call) {
  if (call.operation == Operation::kSend) return 0;
  return call.operation == Operation::kReduceScatter ? call.count : call.elements();
}

/// Training of a model on one rank: each iteration is the rank's model::Program. Every call has
/// memory and data of its own, so that everything it must have done is checked when the iteration
/// is over; contributor r of a result is rank r of the job with the data of that call.
class ModelJob final : public Job {
 public:
  ModelJob(const scenario::Workload& workload, int rank)
      : workload_(workload),
        training_(*workload.model),
        type_(training_.model.dtype),
        rank_(rank),
        program_(model::programOf(training_, rank)) {
    for (const Group group : kAllGroups) {
      members_[index(group)] = model::membersOf(training_, group, rank);
    }
    std::size_t input = 0, result = 0;
    for (const Call& call : program_.calls) {
      inputs_.push_back(input);
      results_.push_back(result);
      input += aligned(inputCount(call));
      result += aligned(resultCount(call));
    }
    input_.resize(input);
    result_.resize(result);
    state_.resize(bytesOf(program_.stateElements));
  }

  std::uint64_t warmups() const override {
    return static_cast<std::uint64_t>(workload_.warmupIterations);
  }
  std::uint64_t iterations() const override {
    return static_cast<std::uint64_t>(workload_.iterations);
  }

  Status join(comm::Communicator& communicator) override {
    for (const Group group : kAllGroups) {
      if (!isSplit(group)) continue;
      const std::vector<int>& members = members_[index(group)];
      const bool in = std::ranges::count(members, rank_) > 0 && members.size() > 1;
      ASSIGN_OR_RETURN(
          groups_[index(group)],
          communicator.split(in ? members.front() : comm::Communicator::kNoColor, rank_));
    }
    return okStatus();
  }

  Status goOnWith(std::span<const int> ranks) override {
    if (!training_.onlyCopies()) {
      return errorf(Code::kUnsupported, "each rank has a part of the model that no other one has");
    }
    members_[index(Group::kCopies)].assign(ranks.begin(), ranks.end());
    return okStatus();
  }

  void prepare(const Number& /*number*/, const DataKey& key) override {
    const auto fill =
        workload_.gradient.data == scenario::DataKind::kIntegers ? fillIntegers : fillRandom;
    for (int i = 0; i < calls(); ++i) {
      const Call& call = program_.calls[i];
      fill(type_, input(i), inputCount(call), firstIndexOf(call), key, rank_);
    }
    poison(result_.data(), std::ssize(result_));
  }

  Result<IterationTime> run(comm::Communicator& communicator,
                            const std::function<void(TimePoint)>& started) override;

  // A model trains whatever the planner tries.
  bool runsAgain() override { return false; }
  void corruptResult(std::uint64_t seed) override {
    for (int i = 0; i < calls(); ++i) {
      const std::int64_t count = resultCount(program_.calls[i]);
      if (count == 0) continue;
      corruptOneElement(type_, result(i), count, seed);
      return;
    }
  }
  JobCheck check(const DataKey& key) const override {
    return workload_.gradient.data == scenario::DataKind::kIntegers ? checkAll(key) : digestAll();
  }

  /// The optimizer, of what is reduced; what a rank alone has a copy of is not in its state.
  void step() override {
    for (int i = 0; i < calls(); ++i) {
      const Call& call = program_.calls[i];
      if (call.stateOffset < 0) continue;
      reduction::reduce(type_, reduction::ReduceOp::kSum, state_.data() + bytesOf(call.stateOffset),
                        result(i), resultCount(call));
    }
  }
  std::span<const std::byte> state() const override { return state_; }
  bool restoreState(std::span<const std::byte> state) override {
    if (state.size() != state_.size()) return false;
    std::ranges::copy(state, state_.begin());
    return true;
  }

 private:
  static std::size_t index(Group group) { return static_cast<std::size_t>(group); }
  int calls() const { return static_cast<int>(program_.calls.size()); }
  std::size_t bytesOf(std::int64_t elements) const {
    return static_cast<std::size_t>(elements * reduction::sizeOf(type_));
  }
  /// Poison comes in words.
  std::size_t aligned(std::int64_t elements) const {
    constexpr std::size_t kAlignment = 8;
    return (bytesOf(elements) + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::byte* input(int call) { return input_.data() + inputs_[call]; }
  std::byte* result(int call) { return result_.data() + results_[call]; }
  const std::byte* result(int call) const { return result_.data() + results_[call]; }

  /// Whether some ranks of the job have such a group, and it is not all of them.
  bool isSplit(Group group) const {
    const model::Parallel& parallel = training_.parallel;
    const auto isPart = [&](int size) { return size > 1 && size < parallel.ranks(); };
    switch (group) {
      case Group::kCopies:
        return isPart(parallel.data * parallel.expert);
      case Group::kExpertCopies:
        return training_.sharesExperts() && isPart(parallel.data);
      case Group::kTensor:
        return isPart(parallel.tensor);
      case Group::kExpert:
        return isPart(parallel.expert);
      case Group::kPipeline:
        return isPart(parallel.pipeline);
      case Group::kEmbedding:
        break;
    }
    return training_.model.family == model::Family::kGpt && parallel.pipeline > 1;
  }

  std::shared_ptr<comm::Work> begin(int number, comm::Communicator& all);
  Status runSteps(comm::Communicator& all, IterationTime& time,
                  std::vector<std::shared_ptr<comm::Work>>& works);
  Status await(int number, comm::Work& work, IterationTime& time) const;
  JobCheck checkAll(const DataKey& key) const;
  void checkCall(int number, const DataKey& key, JobCheck& sum) const;
  JobCheck digestAll() const;

  const scenario::Workload workload_;
  const model::Training training_;
  const reduction::DataType type_;
  const int rank_;
  const model::Program program_;
  std::array<std::vector<int>, model::kGroups> members_;
  /// Null: the rank is in none, or it is the whole job.
  std::array<std::unique_ptr<comm::Communicator>, model::kGroups> groups_;
  std::vector<std::size_t> inputs_;  // by call, where its memory begins
  std::vector<std::size_t> results_;
  std::vector<std::byte> input_;
  std::vector<std::byte> result_;
  std::vector<std::byte> state_;
};

std::shared_ptr<comm::Work> ModelJob::begin(int number, comm::Communicator& all) {
  const Call& call = program_.calls[number];
  const auto& own = groups_[index(call.group)];
  comm::Communicator& group = own ? *own : all;
  const std::byte* const source = input(number);
  std::byte* const target = result(number);
  const auto peer = [&] {
    const std::vector<int>& members = members_[index(call.group)];
    return static_cast<int>(std::ranges::find(members, call.peer) - members.begin());
  };
  constexpr auto kSum = reduction::ReduceOp::kSum;
  switch (call.operation) {
    case Operation::kAllReduce:
      return group.allReduce(source, target, call.count, type_, kSum);
    case Operation::kReduceScatter:
      return group.reduceScatter(source, target, call.count, type_, kSum);
    case Operation::kAllGather:
      return group.allGather(source, target, call.count, type_);
    case Operation::kAllToAll:
      return group.allToAll(source, target, call.count, type_);
    case Operation::kSend:
      return group.send(source, call.count, type_, peer());
    case Operation::kReceive:
      break;
  }
  return group.receive(target, call.count, type_, peer());
}

/// The rank's compute is at `time.end`; what is awaited beyond that is exposed.
Status ModelJob::await(int number, comm::Work& work, IterationTime& time) const {
  RETURN_IF_ERROR(work.wait());
  const Duration longer = work.finished() - time.end;
  if (longer <= Duration::zero()) return okStatus();
  time.exposed[static_cast<std::size_t>(program_.calls[number].phase)] += longer;
  time.end = work.finished();
  return okStatus();
}

Status ModelJob::runSteps(comm::Communicator& all, IterationTime& time,
                          std::vector<std::shared_ptr<comm::Work>>& works) {
  for (const model::Step& step : program_.steps) {
    switch (step.kind) {
      case model::Step::Kind::kCompute:
        time.end += std::chrono::round<Duration>(std::chrono::duration<double>(step.time));
        break;
      case model::Step::Kind::kCall:
        computeUntil(time.end, /*burn=*/false);
        works[step.call] = begin(step.call, all);
        break;
      case model::Step::Kind::kWait:
        RETURN_IF_ERROR(await(step.call, *works[step.call], time));
    }
  }
  for (int i = 0; i < calls(); ++i) RETURN_IF_ERROR(await(i, *works[i], time));
  return okStatus();
}

Result<IterationTime> ModelJob::run(comm::Communicator& communicator,
                                    const std::function<void(TimePoint)>& started) {
  IterationTime time;
  time.start = time.end = now();
  time.exposed.resize(model::kPhases);
  started(time.start);
  std::vector<std::shared_ptr<comm::Work>> works(program_.calls.size());
  const Status status = runSteps(communicator, time, works);
  if (!status.ok()) {
    for (const auto& work : works) {  // all of them, as they own parts of the buffers
      if (work) (void)work->wait();
    }
    return status;
  }
  computeUntil(time.end, /*burn=*/false);
  return time;
}

void ModelJob::checkCall(int number, const DataKey& key, JobCheck& sum) const {
  const Call& call = program_.calls[number];
  const std::vector<int>& members = members_[index(call.group)];
  const auto own = std::ranges::find(members, rank_) - members.begin();
  const auto look = [&](std::int64_t block, std::int64_t firstIndex, std::span<const int> from) {
    const CheckResult found =
        checkIntegers(type_, result(number) + bytesOf(block * call.count), call.count, firstIndex,
                      key, {.ranks = static_cast<int>(from.size()), .list = from});
    sum.wrong += found.wrong;
    sum.checked += found.checked;
  };
  const std::int64_t first = firstIndexOf(call);
  switch (call.operation) {
    case Operation::kAllReduce:
      look(0, first, members);
      break;
    case Operation::kReduceScatter:
      look(0, first + own * call.count, members);
      break;
    case Operation::kAllGather:
      for (int i = 0; i < call.blocks; ++i) look(i, first, std::span(&members[i], 1));
      break;
    case Operation::kAllToAll:
      for (int i = 0; i < call.blocks; ++i) {
        look(i, first + own * call.count, std::span(&members[i], 1));
      }
      break;
    case Operation::kReceive:
      look(0, first, std::span(&call.peer, 1));
      break;
    case Operation::kSend:
      break;
  }
}

JobCheck ModelJob::checkAll(const DataKey& key) const {
  JobCheck sum;
  for (int i = 0; i < calls(); ++i) checkCall(i, key, sum);
  return sum;
}

JobCheck ModelJob::digestAll() const {
  JobCheck sum;
  Digest digest;
  const std::int64_t size = reduction::sizeOf(type_);
  for (int i = 0; i < calls(); ++i) {
    const auto bytes = static_cast<std::int64_t>(bytesOf(resultCount(program_.calls[i])));
    const std::int64_t poisoned =
        countPoison(result(i), bytes) * static_cast<std::int64_t>(sizeof(kPoisonWord));
    sum.wrong += (poisoned + size - 1) / size;
    digest.add(result(i), static_cast<std::size_t>(bytes));
  }
  sum.digest = digest.hex();
  return sum;
}

}  // namespace

std::unique_ptr<Job> makeModelJob(const scenario::Workload& workload, int rank, int /*ranks*/) {
  return std::make_unique<ModelJob>(workload, rank);
}

}  // namespace faultline::workload
