#pragma once

#include <string>
#include <vector>

#include "reports/result.h"

namespace faultline::reports {

/// The verdict in words that somebody understands who sees this program for the first time.
struct VerdictText {
  std::string headline;              ///< one sentence
  std::vector<std::string> reasons;  ///< why; the most important first
  /// Of a verdict fail, each expectation that does not hold: for who does not list them all.
  std::vector<std::string> broken{};
};

VerdictText explainVerdict(const ScenarioResult& result);

/// Its headline where it stands with headline() (headline.h), which may begin with it: then "".
std::string besideHeadline(const VerdictText& verdict, const ScenarioResult& result);

/// One line about what equal runs differ by, and why no speed can be told where that is so.
std::string noiseText(const Noise& noise);

/// The same of fault-free runs before and after all others.
std::string driftText(const Drift& drift);

/// "4.3 / 14.7": p50 / p99 in milliseconds, or p50 / max marked with > where there are too few
/// samples for a p99; "-" without any.
std::string spreadText(const Percentiles& times);

/// Why it has no p95 or p99: "p95 from 60 on, p99 from 300 on"; empty: it has both, or no sample.
std::string missingPercentiles(const Percentiles& times);

/// Its runs are of a server: their iterations are requests, which overlap.
bool serves(const ScenarioResult& result);

/// What to change where a rate is a burst: "a burst, not a rate: ..., from 108 `requests` on it is
/// one"; empty where it is a rate.
std::string burstText(const RateRow& rate);

/// "245 s of 31 req", "68 min of the job": what one fault costs by a model; in all reports alike.
std::string faultCostText(const FaultCost& cost);

/// "1 234 567": digits in groups of three.
std::string groupDigits(std::int64_t number);

/// The value of an expectation as text: 38.2, ok, or "no such value".
std::string valueText(const Json& value);

}  // namespace faultline::reports
