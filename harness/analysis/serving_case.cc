#include "harness/analysis/serving_case.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "harness/analysis/speed_bound.h"
#include "harness/baseline/strategy_table.h"
#include "harness/inference/accounting.h"
#include "harness/inference/serving.h"
#include "harness/scenario/fault_list.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::run {
namespace {

using reports::Run;
using reports::ServedRequest;

/// Completed runs of fault_free.
std::vector<const Run*> faultFreeRuns(std::span<const Run> runs) {
  std::vector<const Run*> found;
  for (const Run& run : runs) {
    if (run.strategy == baseline::kReferenceRow && comparable(run)) found.push_back(&run);
  }
  return found;
}

/// When a fault would have struck for the first time in this run, in milliseconds after t = 0: one
/// that waits for a request strikes when that one comes. Nullopt: after another fault.
std::optional<double> firstStrike(const scenario::Fault& fault, const Run& run) {
  if (std::holds_alternative<scenario::BeforeStart>(fault.trigger)) return 0;
  if (const auto* at = std::get_if<scenario::At>(&fault.trigger)) return toMilliseconds(at->time);
  if (const auto* moments = std::get_if<scenario::Moments>(&fault.trigger)) {
    if (moments->list.empty()) return std::nullopt;
    return toMilliseconds(moments->list.front().time);
  }
  if (const auto* during = std::get_if<scenario::During>(&fault.trigger)) {
    const auto request = std::ranges::find(run.requests, during->iteration, &ServedRequest::id);
    if (request != run.requests.end()) return request->arrival_ms;
  }
  return std::nullopt;
}

std::optional<double> firstFault(std::span<const scenario::Fault> faults, const Run& run) {
  std::optional<double> first;
  for (const scenario::Fault& fault : faults) {
    const std::optional<double> moment = firstStrike(fault, run);
    if (moment && (!first || *moment < *first)) first = moment;
  }
  return first;
}

/// When the first request of a rate came.
std::optional<double> beginOf(const Run& run, int rate) {
  std::optional<double> begin;
  for (const ServedRequest& request : run.requests) {
    if (request.rate != rate || !request.arrival_ms) continue;
    if (!begin || *request.arrival_ms < *begin) begin = request.arrival_ms;
  }
  return begin;
}

/// The rate that has begun last at that moment.
int rateAt(const Run& run, double moment) {
  int rate = 0;
  for (int next = 1; next < std::ssize(run.rates); ++next) {
    const std::optional<double> begin = beginOf(run, next);
    if (begin && *begin <= moment) rate = next;
  }
  return rate;
}

/// The mean of what is there; 0 of nothing.
class Mean {
 public:
  void add(std::optional<double> value) {
    if (!value) return;
    sum_ += *value;
    ++n_;
  }
  double value() const { return n_ == 0 ? 0 : sum_ / n_; }
  int n() const { return n_; }

 private:
  double sum_ = 0;
  int n_ = 0;
};

Mean meanLatency(std::span<const Run* const> runs, int rate,
                 std::optional<double> ServedRequest::*time) {
  Mean mean;
  for (const Run* run : runs) {
    for (const ServedRequest& request : run->requests) {
      if (request.rate == rate) mean.add(request.*time);
    }
  }
  return mean;
}

/// Of the rates at which the server keeps up the highest one; 0: it keeps up with none.
double highestKeptUp(std::span<const Run* const> runs) {
  double highest = 0;
  for (std::size_t rate = 0; rate < runs.front()->rates.size(); ++rate) {
    inference::Account account;
    for (const Run* run : runs) {
      account.requests += run->rates[rate].requests;
      account.finished += run->rates[rate].finished;
    }
    if (account.good() < inference::kKeepsUp) continue;
    highest = std::max(highest, runs.front()->rates[rate].qps);
  }
  return highest;
}

/// Where requests wait least, the time to the first token is next to that of the prompt alone.
int calmestRate(const Run& run) {
  const auto calmest = std::ranges::min_element(run.rates, {}, &reports::RateRow::qps);
  return static_cast<int>(calmest - run.rates.begin());
}

}  // namespace

Result<baseline::ServingCase> servingCase(const scenario::Scenario& scenario,
                                          std::span<const reports::Run> runs, bool asMeasured) {
  const auto missing = [](const char* what) { return Status(Code::kNotFound, what); };
  if (!scenario.workload.kind->hasRequests) return missing("the workload is not a server");
  const std::vector<const Run*> free = faultFreeRuns(runs);
  if (free.empty()) return missing("no run of fault_free came to its end");
  const std::vector<scenario::Fault> faults = scenario::allFaults(scenario);
  const std::optional<double> moment = firstFault(faults, *free.front());
  if (!moment) return missing("no fault strikes at a moment that is known");
  const int rate = rateAt(*free.front(), *moment);
  const double capacity = highestKeptUp(free);
  if (capacity == 0) {
    return missing(
        "fault_free keeps up with none of the rates, so its capacity is unknown: "
        "add a lower rate to 'qps', or objectives that it can meet");
  }
  Mean prompt;
  Mean output;
  for (const Run* run : free) {
    for (const ServedRequest& request : run->requests) {
      if (request.rate != rate || !request.e2e_ms) continue;
      prompt.add(request.prompt);
      output.add(request.output);
    }
  }
  if (prompt.n() == 0) return missing("fault_free served no request at the rate of the fault");
  const model::Training& job = *scenario.workload.model;
  const double scale = asMeasured ? 1 : job.scale;
  const auto seconds = [&](double milliseconds) {
    return scale * milliseconds / kMillisecondsPerSecond;
  };
  const auto mean = [&](int ofRate, std::optional<double> ServedRequest::*time) {
    return seconds(meanLatency(free, ofRate, time).value());
  };
  constexpr double kBitsPerByte = 8;
  return baseline::ServingCase{
      .scale = scale,
      .requestsPerSecond = free.front()->rates[static_cast<std::size_t>(rate)].qps / scale,
      .capacity = capacity / scale,
      .requests = static_cast<double>(prompt.n()) / static_cast<double>(free.size()),
      .promptTokens = prompt.value(),
      .outputTokens = output.value(),
      .prefillSeconds = mean(calmestRate(*free.front()), &ServedRequest::ttft_ms),
      .firstTokenSeconds = mean(rate, &ServedRequest::ttft_ms),
      .tokenSeconds = mean(rate, &ServedRequest::tpot_ms),
      .endToEndSeconds = mean(rate, &ServedRequest::e2e_ms),
      .kvBytesPerToken =
          static_cast<double>(inference::kvElements(job, 1)) * reduction::sizeOf(job.model.dtype),
      .bytesPerSecond = static_cast<double>(scenario.cluster.railRate) * scenario.cluster.rails /
                        kBitsPerByte * (asMeasured ? job.scale : 1)};
}

}  // namespace faultline::run
