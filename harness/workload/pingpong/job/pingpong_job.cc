#include "harness/workload/pingpong/job/pingpong_job.h"

#include <cstddef>
#include <vector>

#include "harness/workload/data.h"
#include "harness/workload/pingpong/section/values.h"
#include "harness/workload/poison.h"

namespace faultline::workload {
namespace {

constexpr auto kType = reduction::DataType::kU8;

class PingpongJob final : public Job {
 public:
  PingpongJob(const scenario::Workload& workload, int rank, int ranks)
      : values_(scenario::pingpongOf(workload)),
        warmups_(static_cast<std::uint64_t>(workload.warmupIterations)),
        iterations_(static_cast<std::uint64_t>(workload.iterations)),
        rank_(rank),
        partner_(scenario::partnerOf(rank, ranks)),
        sent_(static_cast<std::size_t>(values_.bytes())),
        got_(wholePoisonWords(values_.bytes())) {}

  std::uint64_t warmups() const override { return warmups_; }
  std::uint64_t iterations() const override { return iterations_; }

  Status goOnWith(std::span<const int> /*ranks*/) override {
    return errorf(Code::kUnsupported, "rank {} exchanges messages with rank {} alone", rank_,
                  partner_);
  }

  void prepare(const Number& /*number*/, const DataKey& key) override {
    fillIntegers(kType, sent_.data(), values_.bytes(), 0, key, rank_);
    poison(got_.data(), std::ssize(got_));
  }

  Result<IterationTime> run(comm::Communicator& communicator,
                            const std::function<void(TimePoint)>& started) override {
    IterationTime time;
    time.start = now();
    started(time.start);
    for (int exchange = 0; exchange < values_.exchanges; ++exchange) {
      // Whoever begins has the place for the answer before it sends.
      const auto answer = receive(communicator, exchange);
      if (!begins()) RETURN_IF_ERROR(answer->wait());
      const auto message =
          communicator.send(sent_.data() + exchange * values_.size, values_.size, kType, partner_);
      RETURN_IF_ERROR(message->wait());
      if (begins()) RETURN_IF_ERROR(answer->wait());
    }
    time.end = now();
    return time;
  }

  bool runsAgain() override { return false; }

  void corruptResult(std::uint64_t seed) override {
    corruptOneElement(kType, got_.data(), values_.bytes(), seed);
  }

  JobCheck check(const DataKey& key) const override {
    const CheckResult found =
        checkIntegers(kType, got_.data(), values_.bytes(), 0, key, {.firstRank = partner_});
    return {.wrong = found.wrong, .checked = found.checked, .digest = {}};
  }

  // Every exchange stands for itself.
  void step() override {}
  std::span<const std::byte> state() const override { return {}; }
  bool restoreState(std::span<const std::byte> state) override { return state.empty(); }

 private:
  bool begins() const { return rank_ < partner_; }
  std::shared_ptr<comm::Work> receive(comm::Communicator& communicator, int exchange) {
    return communicator.receive(got_.data() + exchange * values_.size, values_.size, kType,
                                partner_);
  }

  const scenario::Pingpong values_;
  const std::uint64_t warmups_;
  const std::uint64_t iterations_;
  const int rank_;
  const int partner_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> got_;
};

}  // namespace

std::unique_ptr<Job> makePingpongJob(const scenario::Workload& workload, int rank, int ranks) {
  return std::make_unique<PingpongJob>(workload, rank, ranks);
}

}  // namespace faultline::workload
