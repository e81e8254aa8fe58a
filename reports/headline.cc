#include "reports/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
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

/// How a job under one strategy came through the faults; the worst of its runs.
enum class Fate { kSurvived, kShrunk, kRestarted, kDied };

/// What the headline knows of one strategy that was executed.
struct Story {
  std::string name;
  bool plain = false;            ///< nothing that is for faults was on, and there were none
  bool stock = false;            ///< its library has no failover, and is started again
  bool as_it_is = false;         ///< a program that is not ours, for which nothing was set up
  const Summary* row = nullptr;  ///< nullptr: it has no row
  StrategyTally tally;
  bool faulted = false;
  Fate fate = Fate::kSurvived;
  int died = 0;   ///< runs that did not go on
  int hung = 0;   ///< of them
  int ranks = 0;  ///< of a smaller job: those that were left, the fewest
  int all_ranks = 0;
  std::optional<double> usual_restart_ms{};  ///< the longest, had the watchdog been the usual one
};

std::string plain(const std::string& text) {
  std::string line = cleanText(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return line;
}

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

void addRun(Story& story, const Run& run) {
  story.plain = run.arm == Arm::kPlain;
  story.stock = run.options.contains("watchdog") || !run.restarts.empty();
  story.as_it_is = run.faulted && !run.processes.empty() && !run.options.contains("mode");
  story.faulted = story.faulted || (run.faulted && run.arm == Arm::kFaulted);
  Fate fate = Fate::kSurvived;
  const bool stopped = run.status == RunStatus::kFailed || run.status == RunStatus::kHung;
  if (!run.restarts.empty()) {
    // A run that hung, was killed and began again has gone on.
    fate = run.status == RunStatus::kFailed ? Fate::kDied : Fate::kRestarted;
  } else if (stopped) {
    fate = Fate::kDied;
  } else if (!run.shrinks.empty()) {
    fate = Fate::kShrunk;
    const Shrink& last = run.shrinks.back();
    if (story.ranks == 0 || last.ranks < story.ranks) {
      story.ranks = last.ranks;
      story.all_ranks = last.ranks + static_cast<int>(last.missing.size());
    }
  }
  if (fate == Fate::kDied) {
    ++story.died;
    if (run.status == RunStatus::kHung) ++story.hung;
  }
  story.fate = std::max(story.fate, fate);
  for (const Restart& restart : run.restarts) {
    if (!restart.unscaled_total_ms) continue;
    story.usual_restart_ms =
        std::max(story.usual_restart_ms.value_or(0), *restart.unscaled_total_ms);
  }
}

std::vector<Story> storiesOf(const ScenarioResult& result) {
  std::vector<Story> stories;
  for (const StrategyTally& tally : tallyByStrategy(result)) {
    if (tally.runs == 0) continue;  // modelled
    Story& story = stories.emplace_back();
    story.name = plain(tally.strategy);
    story.tally = tally;
    const auto row = std::ranges::find(result.summary, tally.strategy, &Summary::strategy);
    if (row != result.summary.end()) story.row = &*row;
    for (const Run& run : result.runs) {
      if (run.strategy == tally.strategy) addRun(story, run);
    }
  }
  return stories;
}

/// Share of the fault-free bus bandwidth at the largest size of a sweep; nullopt: of no sweep.
struct KeptBandwidth {
  std::string call;
  double share = 0;
};
std::optional<KeptBandwidth> keptBandwidth(const std::vector<SweptCall>& calls,
                                           const std::string& strategy) {
  std::optional<KeptBandwidth> kept;
  std::int64_t largest = -1;
  for (const SweptCall& call : calls) {
    for (const StrategyCalls& of : call.strategies) {
      if (of.strategy != strategy || !of.kept || of.mis_measured) continue;
      // Of equally large ones the slowest: nothing here is to flatter.
      const bool larger = call.size_bytes > largest;
      if (!larger && (call.size_bytes < largest || *of.kept >= kept->share)) continue;
      largest = call.size_bytes;
      kept = KeptBandwidth{fmt::format("{} of {}", call.operation, formatSize(call.size_bytes)),
                           *of.kept};
    }
  }
  return kept;
}

std::optional<double> overheadOf(const Story& story) {
  if (story.row == nullptr || !story.row->overhead_pct) return std::nullopt;
  const double median = story.row->overhead_pct->median;
  return std::isfinite(median) ? std::optional(median) : std::nullopt;
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
    addAll(clauses, Fate::kSurvived);
    addAll(clauses, Fate::kShrunk);
    addAll(clauses, Fate::kRestarted);
    addAll(clauses, Fate::kDied);
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
    const bool goes_on = story.fate == Fate::kSurvived || story.fate == Fate::kShrunk;
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

  std::vector<const Story*> withFate(Fate fate) const {
    std::vector<const Story*> found;
    for (const Story& story : stories_) {
      if (story.faulted && story.fate == fate) found.push_back(&story);
    }
    return found;
  }

  void addAll(std::vector<std::string>& clauses, Fate fate) {
    std::vector<const Story*> stories = withFate(fate);
    if (fate == Fate::kSurvived && stories.size() > kNamed) {
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

  std::string clauseOf(const Story& story, Fate fate, bool first) const {
    switch (fate) {
      case Fate::kSurvived:
        return fmt::format("{}{}{}: {}", called(story), first ? " " : "", first ? survived() : "",
                           numbersOf(story));
      case Fate::kShrunk:
        return fmt::format("{} went on with {} of {} ranks: {}", called(story), story.ranks,
                           story.all_ranks, numbersOf(story));
      case Fate::kRestarted: {
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
      case Fate::kDied:
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
      if (story.faulted || story.fate != Fate::kDied) continue;
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
                          plain(speed.unit));
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
      costs.push_back(fmt::format("{} {}", plain(row.strategy), cost));
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
    wrong.push_back(fmt::format("{} ({} of {} elements)", plain(tally.strategy),
                                groupDigits(tally.wrong_elements),
                                groupDigits(tally.checked_elements)));
  }
  return wrong.empty() ? "" : "WRONG RESULTS by " + listed(wrong);
}

/// The first sentence of a reason, without its full stop.
std::string reasonOf(const ScenarioResult& result) {
  std::string reason = plain(result.reason);
  while (reason.ends_with('.')) reason.pop_back();
  return reason.empty() ? "no reason was recorded, see log.txt" : reason;
}

std::string failedExpectations(const ScenarioResult& result) {
  std::vector<std::string> failing;
  for (const Expectation& expectation : result.expectations) {
    if (!expectation.pass && !expectation.is_void) failing.push_back(plain(expectation.text));
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
                             [](const Story& story) { return story.fate == Fate::kDied; });
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
