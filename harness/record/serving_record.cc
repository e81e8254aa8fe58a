#include "harness/record/serving_record.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/clock.h"
#include "harness/stats/quantile.h"

namespace faultline::run {
namespace {

using reports::Run;
using reports::ServedRequest;

}  // namespace

ServingRecord::ServingRecord(const scenario::Scenario& scenario, int block)
    : serving_(*scenario.workload.serving),
      rates_(inference::arrivalsOf(serving_, scenario.seed, block)) {
  for (std::size_t rate = 0; rate < rates_.size(); ++rate) {
    for (const inference::Request& request : rates_[rate].requests) {
      requests_[request.id] = {.rate = static_cast<int>(rate), .request = request};
    }
  }
}

void ServingRecord::begun(const wire::Begin& message) {
  const auto entry = requests_.find(message.iteration);
  if (entry != requests_.end()) ++entry->second.begun;
}

void ServingRecord::ended(int rank, const wire::End& message) {
  lateMs_[rank] += toMilliseconds(message.late);
  const auto entry = requests_.find(message.iteration);
  if (entry == requests_.end() || !message.last) return;
  if (!entry->second.last) entry->second.last = message.last;
}

void ServingRecord::told(const wire::Rate& message) {
  starts_.try_emplace(message.rate, message.at);
}

void ServingRecord::told(const wire::Token& message) {
  for (const int id : message.requests) {
    const auto entry = requests_.find(id);
    if (entry == requests_.end() || entry->second.first) continue;  // redone: he had it already
    entry->second.first = message.at;
  }
}

void ServingRecord::served(int rank, const wire::Served& message) {
  lateMs_[rank] += toMilliseconds(message.late);
}

workload::ServerConfig ServingRecord::whatIsLeft() const {
  workload::ServerConfig config;
  for (std::size_t rate = 0; rate < rates_.size(); ++rate) {
    inference::Arrivals left{.qps = rates_[rate].qps, .requests = {}};
    for (const inference::Request& request : rates_[rate].requests) {
      if (!requests_.at(request.id).last) left.requests.push_back(request);
    }
    if (left.requests.empty() && config.rates.empty()) {
      config.firstRate = static_cast<int>(rate) + 1;
      continue;
    }
    if (config.rates.empty()) {
      const auto start = starts_.find(static_cast<int>(rate));
      if (start != starts_.end()) config.rateStart = start->second;
    }
    config.rates.push_back(std::move(left));
  }
  const auto median = [&](int inference::Request::*length) {
    std::vector<double> lengths;
    for (const auto& [id, entry] : requests_) lengths.push_back(entry.request.*length);
    return static_cast<int>(std::lround(stats::median(lengths).value_or(1)));
  };
  config.usualPrompt = median(&inference::Request::prompt);
  config.usualOutput = median(&inference::Request::output);
  return config;
}

std::vector<double> ServingRecord::rates() const {
  std::vector<double> qps;
  for (const inference::Arrivals& rate : rates_) qps.push_back(rate.qps);
  return qps;
}

int ServingRecord::underWay() const {
  return static_cast<int>(std::ranges::count_if(
      requests_, [](const auto& entry) { return entry.second.begun > 0 && !entry.second.last; }));
}

void ServingRecord::finish(Run& run, TimePoint t0, bool ended) {
  double lastMs = 0;
  for (const auto& [id, entry] : requests_) {
    inference::Served served{.rate = entry.rate,
                             .request = entry.request,
                             .arrival = {},
                             .first = {},
                             .last = {},
                             .begun = entry.begun};
    if (const auto start = starts_.find(entry.rate); start != starts_.end()) {
      constexpr double kMilliseconds = 1000;
      served.arrival = toMilliseconds(start->second - t0) + entry.request.arrival * kMilliseconds;
    }
    if (entry.first) served.first = toMilliseconds(*entry.first - t0);
    if (entry.last) served.last = toMilliseconds(*entry.last - t0);
    lastMs = std::max(lastMs, served.last.value_or(0));
    run.requests.push_back({.id = id,
                            .rate = entry.rate,
                            .prompt = entry.request.prompt,
                            .output = entry.request.output,
                            .fate = std::string(nameOf(fateOf(served, serving_.objectives))),
                            .begun = entry.begun,
                            .arrival_ms = served.arrival,
                            .ttft_ms = ttftOf(served),
                            .tpot_ms = tpotOf(served),
                            .e2e_ms = endToEndOf(served)});
  }
  run.counters["steps"] += steps_;
  constexpr double kMicrosecondsPerMs = 1000;
  double latest = 0;
  for (const auto& [rank, late] : lateMs_) latest = std::max(latest, late);
  run.counters["late_compute_us"] = std::llround(latest * kMicrosecondsPerMs);
  run.throughput.reset();
  if (!ended || !(lastMs > 0)) return;
  const auto done = std::ranges::count_if(
      run.requests, [](const ServedRequest& request) { return request.e2e_ms.has_value(); });
  constexpr double kSecond = 1000;
  run.throughput = reports::Quantity{static_cast<double>(done) / (lastMs / kSecond), "requests/s"};
  run.duration_ms = lastMs;
}

}  // namespace faultline::run
