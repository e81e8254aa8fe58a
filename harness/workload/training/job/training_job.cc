#include "harness/workload/training/job/training_job.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "harness/workload/compute.h"

namespace faultline::workload {
namespace {

/// Share of the compute time that is the forward pass: the backward pass costs about twice as much
/// (one product for the inputs and one for the weights).
constexpr int kForwardParts = 1;
constexpr int kBackwardParts = 2;

}  // namespace

Duration bucketReadyAfter(Duration compute, int buckets, int index) {
  const Duration forward = compute * kForwardParts / (kForwardParts + kBackwardParts);
  return forward + (compute - forward) * (index + 1) / buckets;
}

Result<IterationTime> trainIteration(const scenario::Workload& workload, Gradient& gradient,
                                     comm::Communicator& communicator,
                                     const std::function<void(TimePoint)>& started) {
  const int buckets = workload.gradient.buckets;
  const auto& compute = workload.compute;
  std::vector<std::shared_ptr<comm::Work>> works;
  works.reserve(buckets);
  IterationTime time;
  time.start = now();
  started(time.start);
  for (int index = 0; index < buckets; ++index) {
    computeUntil(time.start + bucketReadyAfter(compute.duration, buckets, index), compute.burn);
    const Bucket bucket = bucketOf(gradient.elements(), buckets, index);
    works.push_back(communicator.allReduce(gradient.contribution(bucket), gradient.result(bucket),
                                           bucket.count, gradient.type(),
                                           reduction::ReduceOp::kSum));
  }
  time.end = now();
  Status status;
  for (const auto& work : works) {  // all of them, as they own parts of the gradient
    const Status done = work->wait();
    if (status.ok()) status = done;
    time.end = std::max(time.end, work->finished());
  }
  if (!status.ok()) return status;
  return time;
}

namespace {

class TrainingJob final : public Job {
 public:
  TrainingJob(const scenario::Workload& workload, int rank, int ranks)
      : workload_(workload), gradient_(workload.gradient, rank, ranks) {}

  std::uint64_t warmups() const override {
    return static_cast<std::uint64_t>(workload_.warmupIterations);
  }
  std::uint64_t iterations() const override {
    return static_cast<std::uint64_t>(workload_.iterations);
  }
  Status goOnWith(std::span<const int> ranks) override {
    gradient_.goOnWith(ranks);
    return okStatus();
  }
  void prepare(const Number& /*number*/, const DataKey& key) override { gradient_.prepare(key); }
  Result<IterationTime> run(comm::Communicator& communicator,
                            const std::function<void(TimePoint)>& started) override {
    return trainIteration(workload_, gradient_, communicator, started);
  }
  // A model trains whatever the planner tries.
  bool runsAgain() override { return false; }
  void corruptResult(std::uint64_t seed) override { gradient_.corruptResult(seed); }
  JobCheck check(const DataKey& key) const override { return gradient_.check(key); }
  void step() override { gradient_.step(); }
  std::span<const std::byte> state() const override { return gradient_.state(); }
  bool restoreState(std::span<const std::byte> state) override {
    return gradient_.restoreState(state);
  }

 private:
  const scenario::Workload workload_;
  Gradient gradient_;
};

}  // namespace

std::unique_ptr<Job> makeTrainingJob(const scenario::Workload& workload, int rank, int ranks) {
  return std::make_unique<TrainingJob>(workload, rank, ranks);
}

}  // namespace faultline::workload
