#include "reports/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "reports/headline_story.h"
#include "reports/swept_calls.h"
#include "reports/tally.h"
#include "reports/text.h"
#include "reports/verdict_text.h"

namespace faultline::reports {
namespace {

constexpr std::size_t kNamed = 3;  // strategies of a kind; of more than so many there is a range

/// Percent of the fault-free speed after a fault from which on nothing is said: less is seldom
/// noise.
constexpr double kAsBefore = 90;

std::string howMany(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", groupDigits(count), noun, count == 1 ? "" : "s");
}

/// `value` with three digits at most behind which nothing is known, without zeros at the end.
std::string roundNumber(double value) {
  const double size = std::abs(value);
  std::string text = fmt::format("{:.{}f}", value, size < 9.95 ? 1 : 0);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

/// "a, b and c", or of many "a, b and 4 others".
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  const std::size_t shown = names.size() <= kNamed ? names.size() : kNamed - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == names.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + names[i];
  }
  if (shown < names.size()) text += fmt::format(" and {} others", names.size() - shown);
  return text;
}

/// "+15 %", or why there is no such number.
std::string costOf(const Story& story, bool has_reference) {
  const auto overhead = overheadOf(story);
  if (!overhead) return has_reference ? "its cost is not known" : "not compared with fault_free";
  if (story.row->mis_measured) return "mis-measured, better than possible";
  if (story.row->overhead_pct->distinguishable == false) return "no cost beyond the noise";
  return shortOverhead(*overhead);
}

class Sentence {
 public:
  explicit Sentence(const ScenarioResult& result)
      : result_(result),
        stories_(storiesOf(result)),
        calls_(sweptCalls(result)),
        met_some_calls_(metSomeCalls(result)) {
    has_reference_ = std::ranges::any_of(
        stories_, [](const Story& story) { return story.name == kReferenceRow; });
  }

  /// What became of the strategies, without the verdict.
  std::string build() {
    std::vector<std::string> clauses;
    addAll(clauses, JobFate::kSurvived);
    addAll(clauses, JobFate::kShrunk);
    addAll(clauses, JobFate::kRestarted);
    addAll(clauses, JobFate::kDied);
    addBroken(clauses);
    if (clauses.empty()) clauses.push_back(withoutFaults());
    addModelled(clauses);
    std::string text;
    for (const std::string& clause : clauses) text += (text.empty() ? "" : "; ") + clause;
    if (oneBlockOnly()) text += " (one run of each: chance is not excluded)";
    return text;
  }

 private:
  bool serving() const { return serves(result_); }

  const char* survived() const {
    if (serving()) return "kept the server up";
    return calls_.empty() ? "kept the job alive" : "finished all calls";
  }

  /// A name, with what it stands for where that is not what it says.
  static std::string called(const Story& story) {
    if (story.stock) return fmt::format("a stock library ({})", story.name);
    if (story.as_it_is) return fmt::format("the program as it is ({})", story.name);
    return story.name;
  }

  std::string numbersOf(const Story& story) const {
    std::string text;
    const auto kept = met_some_calls_ ? std::nullopt : keptBandwidth(calls_, story.tally.strategy);
    if (kept) {
      constexpr double kPercent = 100;
      text = fmt::format("{} % of the fault-free bandwidth ({})",
                         roundNumber(std::min(kPercent, kept->share * kPercent)), kept->call);
    } else {
      text = costOf(story, has_reference_);
      if (serving() && overheadOf(story)) text += " per request";
    }
    if (story.tally.failovers > 0) {
      text += ", longest pause " + shortTime(story.tally.longest_pause_ms);
    }
    text += afterwards(story);
    if (serving()) text += lostRequests(story);
    return text;
  }

  /// A job that goes on and stays slow when the fault is over; empty: it does not, or nobody knows.
  static std::string afterwards(const Story& story) {
    const bool goes_on = story.fate == JobFate::kSurvived || story.fate == JobFate::kShrunk;
    if (!goes_on || story.row == nullptr || !story.row->after_pct) return "";
    const double median = story.row->after_pct->median;
    if (median >= kAsBefore) return "";
    return fmt::format(", only {} % of its speed in the second after the fault",
                       roundNumber(median));
  }

  static std::string lostRequests(const Story& story) {
    if (story.row == nullptr) return "";
    int all = 0;
    int late = 0;
    int lost = 0;
    for (const RateRow& rate : story.row->rates) {
      all += rate.requests;
      late += rate.late;
      lost += rate.lost;
    }
    if (all == 0) return "";
    if (late + lost == 0) return fmt::format(", all {} in time", howMany(all, "request"));
    return fmt::format(", {} lost and {} late of {}", groupDigits(lost), groupDigits(late),
                       howMany(all, "request"));
  }

  std::vector<const Story*> withFate(JobFate fate) const {
    std::vector<const Story*> found;
    for (const Story& story : stories_) {
      if (story.faulted && story.fate == fate) found.push_back(&story);
    }
    return found;
  }

  void addAll(std::vector<std::string>& clauses, JobFate fate) {
    std::vector<const Story*> stories = withFate(fate);
    if (fate == JobFate::kSurvived && stories.size() > kNamed) {
      clauses.push_back(range(stories));
      return;
    }
    for (std::size_t i = 0; i < stories.size(); ++i) {
      if (stories.size() > kNamed && i + 1 >= kNamed) {
        std::vector<std::string> rest;
        for (; i < stories.size(); ++i) rest.push_back(stories[i]->name);
        clauses.push_back(fmt::format("{} likewise: {}", rest.size(), listed(rest)));
        break;
      }
      const bool first = i == 0 && clauses.empty();
      clauses.push_back(clauseOf(*stories[i], fate, first));
    }
  }

  std::string clauseOf(const Story& story, JobFate fate, bool first) const {
    switch (fate) {
      case JobFate::kSurvived:
        return fmt::format("{}{}{}: {}", called(story), first ? " " : "", first ? survived() : "",
                           numbersOf(story));
      case JobFate::kShrunk:
        return fmt::format("{} went on with {} of {} ranks: {}", called(story), story.ranks,
                           story.all_ranks, numbersOf(story));
      case JobFate::kRestarted: {
        std::string text = fmt::format("{} had to be restarted{}: {}", called(story),
                                       story.tally.restarts == 1
                                           ? std::string()
                                           : fmt::format(" ({} times)", story.tally.restarts),
                                       numbersOf(story));
        if (story.usual_restart_ms) {
          text += fmt::format(", and {} per fault with its usual watchdog",
                              shortTime(*story.usual_restart_ms));
        }
        return text;
      }
      case JobFate::kDied:
        return fmt::format("{} did not survive: {} of {} {}{}", called(story), story.died,
                           howMany(story.tally.runs, "run"), how(story),
                           endExpected(story) ? ", as the scenario expects" : "");
    }
    return "";
  }

  static std::string how(const Story& story) {
    if (story.hung == story.died) return "hung";
    return story.hung == 0 ? "failed" : "failed or hung";
  }

  /// An expectation about how it ends holds.
  bool endExpected(const Story& story) const {
    return std::ranges::any_of(result_.expectations, [&](const Expectation& expectation) {
      if (!expectation.pass || expectation.is_void) return false;
      const std::string& text = expectation.text;
      return text.starts_with(story.tally.strategy + ".status ") ||
             text.starts_with(story.tally.strategy + ".exit_code ");
    });
  }

  /// Of many that survived: the cheapest and the dearest.
  std::string range(const std::vector<const Story*>& stories) const {
    std::vector<const Story*> known;
    for (const Story* story : stories) {
      if (overheadOf(*story) && !story->row->mis_measured) known.push_back(story);
    }
    std::string text = fmt::format("{} strategies {}", stories.size(), survived());
    if (known.size() < 2) return text;
    const auto [best, worst] = std::ranges::minmax_element(
        known, {}, [](const Story* story) { return *overheadOf(*story); });
    text += fmt::format(", from {} ({}) to {} ({})", called(**best), numbersOf(**best),
                        called(**worst), numbersOf(**worst));
    if (known.size() < stories.size()) {
      text += fmt::format(", {} not known", stories.size() - known.size());
    }
    return text;
  }

  /// Runs without faults that did not go through all the same.
  void addBroken(std::vector<std::string>& clauses) const {
    for (const Story& story : stories_) {
      if (story.faulted || story.fate != JobFate::kDied) continue;
      clauses.push_back(fmt::format("{}, without any fault, did not finish: {} of {} {}",
                                    story.name, story.died, howMany(story.tally.runs, "run"),
                                    how(story)));
    }
  }

  std::string withoutFaults() const {
    std::string speeds;
    for (const Story& story : stories_) {
      if (story.name == kReferenceRow || story.plain) continue;
      if (!overheadOf(story)) continue;
      speeds += fmt::format("{}{} {}", speeds.empty() ? "" : ", ", story.name,
                            costOf(story, has_reference_));
    }
    std::string text = "No fault was injected, so this says nothing about faults";
    if (!speeds.empty()) {
      text += fmt::format("; against fault_free: {}", speeds);
    } else if (!stories_.empty() && stories_.front().row != nullptr &&
               stories_.front().row->throughput) {
      const Quantity& speed = *stories_.front().row->throughput;
      text += fmt::format(": {} did {} {}", stories_.front().name, roundNumber(speed.value),
                          plainLine(speed.unit));
    }
    return text;
  }

  void addModelled(std::vector<std::string>& clauses) const {
    std::vector<std::string> costs;
    for (const Summary& row : result_.summary) {
      if (row.origin != Origin::kModelled) continue;
      std::string cost = "no value";
      if (row.fault_cost) {
        cost = shortTime(row.fault_cost->seconds * 1000);
        cost += row.fault_cost->requests
                    ? fmt::format(" over {} requests", roundNumber(*row.fault_cost->requests))
                    : " of the job";
      } else if (row.overhead_pct) {
        cost = shortOverhead(row.overhead_pct->median);
      }
      costs.push_back(fmt::format("{} {}", plainLine(row.strategy), cost));
    }
    if (costs.empty()) return;
    clauses.push_back(fmt::format("by a model, not measured, one fault costs: {}", listed(costs)));
  }

  bool oneBlockOnly() const {
    bool one = false;
    for (const Story& story : stories_) {
      if (!story.faulted || !overheadOf(story)) continue;
      if (story.row->n > 1) return false;
      one = true;
    }
    return one;
  }

  const ScenarioResult& result_;
  std::vector<Story> stories_;
  std::vector<SweptCall> calls_;
  bool met_some_calls_ = false;
  bool has_reference_ = false;
};

std::string wrongResults(const ScenarioResult& result) {
  std::vector<std::string> wrong;
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    if (tally.wrong_elements == 0) continue;
    wrong.push_back(fmt::format("{} ({} of {} elements)", plainLine(tally.strategy),
                                groupDigits(tally.wrong_elements),
                                groupDigits(tally.checked_elements)));
  }
  return wrong.empty() ? "" : "WRONG RESULTS by " + listed(wrong);
}

/// The first sentence of a reason, without its full stop.
std::string reasonOf(const ScenarioResult& result) {
  std::string reason = plainLine(result.reason);
  while (reason.ends_with('.')) reason.pop_back();
  return reason.empty() ? "no reason was recorded, see log.txt" : reason;
}

std::string failedExpectations(const ScenarioResult& result) {
  std::vector<std::string> failing;
  for (const Expectation& expectation : result.expectations) {
    if (!expectation.pass && !expectation.is_void) failing.push_back(plainLine(expectation.text));
  }
  if (failing.empty()) return "Failed: " + reasonOf(result);
  return fmt::format("{} of {} {} not hold ({})", failing.size(),
                     howMany(std::ssize(result.expectations), "expectation"),
                     failing.size() == 1 ? "does" : "do", listed(failing));
}

bool aRunIsInvalid(const ScenarioResult& result) {
  return std::ranges::any_of(result.runs, [](const Run& run) {
    return run.status == RunStatus::kInvalid ||
           (run.faulted && !std::ranges::all_of(run.evidence, &Evidence::ok));
  });
}

bool aJobDied(const ScenarioResult& result) {
  return std::ranges::any_of(storiesOf(result),
                             [](const Story& story) { return story.fate == JobFate::kDied; });
}

std::string withVerdict(const ScenarioResult& result) {
  const std::string wrong = wrongResults(result);
  if (result.interrupted) {
    return fmt::format("{}Interrupted after {}: a part of the experiment, which decides nothing",
                       wrong.empty() ? "" : wrong + "; ", howMany(std::ssize(result.runs), "run"));
  }
  if (result.runs.empty() && result.verdict != Verdict::kPass) {
    return "Nothing was measured: " + reasonOf(result);
  }
  if (!wrong.empty()) return wrong + "; " + Sentence(result).build();
  switch (result.verdict) {
    case Verdict::kPass:
      return Sentence(result).build();
    case Verdict::kFail:
      return failedExpectations(result) + "; " + Sentence(result).build();
    case Verdict::kInvalid: {
      const auto undecided = std::ranges::count_if(result.expectations, &Expectation::is_void);
      if (undecided == 0 || aRunIsInvalid(result) || !voidBecause(result).empty()) {
        return fmt::format("Invalid, these numbers prove nothing: {}", reasonOf(result));
      }
      return fmt::format("Not decided, {} of {} cannot be judged; {}", undecided,
                         howMany(std::ssize(result.expectations), "expectation"),
                         Sentence(result).build());
    }
    case Verdict::kError:
      if (aJobDied(result)) return Sentence(result).build();
      return "The experiment could not be finished: " + reasonOf(result);
  }
  return "";
}

}  // namespace

std::string shortTime(double ms) {
  if (!std::isfinite(ms)) return "an unknown time";
  constexpr double kSecond = 1000;
  constexpr double kMinute = 60 * kSecond;
  constexpr double kHour = 60 * kMinute;
  constexpr double kTwice = 2;  // up to two minutes are seconds to a reader
  if (ms > 0 && ms < 0.05) return "less than 0.1 ms";
  if (ms < kSecond - 0.5) return roundNumber(ms) + " ms";
  if (ms < kTwice * kMinute) return roundNumber(ms / kSecond) + " s";
  if (ms < kTwice * kHour) return roundNumber(ms / kMinute) + " min";
  return roundNumber(ms / kHour) + " h";
}

std::string shortOverhead(double percent) {
  if (percent < 0.05) return "no slower";
  return "+" + roundNumber(percent) + " %";
}

std::string headline(const ScenarioResult& result) {
  std::string text = withVerdict(result);
  while (text.ends_with('.')) text.pop_back();
  return text + ".";
}

}  // namespace faultline::reports
