#include "injector/faults/verbs_evidence.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/units.h"

namespace faultline::injector {
namespace {

/// A rate that is exceeded by no more than this was kept: windows of measuring have edges.
constexpr double kRateTolerance = 1.1;
/// Below this much of it a program that always has something waiting is held up by more than the
/// rate.
constexpr double kFarBelow = 0.8;
constexpr double kNanosecondsPerMs = 1e6;
constexpr double kBitsPerMbit = 1e6;

std::string_view observation(verbs::Effect effect) {
  switch (effect) {
    case verbs::Effect::kQpError:
      return "state of queue pairs, read back";
    case verbs::Effect::kPostError:
      return "posts that failed";
    case verbs::Effect::kCompletionRewrite:
      return "completions that became errors";
    case verbs::Effect::kCompletionLoss:
      return "completions that were swallowed";
    case verbs::Effect::kQpDelay:
      return "delay of completions";
    case verbs::Effect::kQpRate:
      break;
  }
  return "rate of completions";
}

double meanMs(const verbs::Counters& counters) {
  return counters.released == 0 ? 0
                                : static_cast<double>(counters.heldNanoseconds) /
                                      static_cast<double>(counters.released) / kNanosecondsPerMs;
}

using Rates = std::span<const std::optional<MeasuredRate>>;

/// Why it is so slow cannot be told from here, only that it is: what is measured is measured while
/// something is held back whenever it is looked at (RateMeter).
std::string farBelow(const verbs::Rule& rule, const MeasuredRate& slowest) {
  const double share = static_cast<double>(slowest.rate) / static_cast<double>(rule.bitsPerSecond);
  if (share >= kFarBelow) return "";
  return fmt::format(
      " ({:.2f} of it, though something was waiting at each look: the program asks for completions "
      "too seldom, or more than this rate holds them up)",
      share);
}

/// "98.00 Mbit/s for 100Mbit requested, measured over 200 ms".
std::string ratesInWords(const verbs::Rule& rule, Rates achieved) {
  const std::string requested = formatRate(static_cast<BitsPerSecond>(rule.bitsPerSecond));
  std::vector<MeasuredRate> measured;
  for (const auto& rate : achieved) {
    if (rate) measured.push_back(*rate);
  }
  if (measured.empty()) {
    return fmt::format("no rate for {} requested, as nothing had to wait for long", requested);
  }
  const auto [slowest, fastest] = std::ranges::minmax(measured, {}, &MeasuredRate::rate);
  const Duration window = std::ranges::min(measured, {}, &MeasuredRate::window).window;
  const auto inMbit = [](const MeasuredRate& rate) {
    return static_cast<double>(rate.rate) / kBitsPerMbit;
  };
  if (achieved.size() == 1) {
    return fmt::format("{:.2f} Mbit/s for {} requested, measured over {:.0f} ms{}", inMbit(fastest),
                       requested, toMilliseconds(window), farBelow(rule, slowest));
  }
  return fmt::format(
      "{:.2f} to {:.2f} Mbit/s in {} of {} processes for {} requested in each, measured over "
      "{:.0f} ms at least{}",
      inMbit(slowest), inMbit(fastest), measured.size(), achieved.size(), requested,
      toMilliseconds(window), farBelow(rule, slowest));
}

std::string seen(const verbs::Rule& rule, const verbs::Counters& counters, Rates achieved) {
  switch (rule.effect) {
    case verbs::Effect::kQpError:
      return fmt::format(
          "{} queue pairs were put in error and read back as ERR, {} could not be, {} were in "
          "error before",
          counters.happened, counters.failures, counters.inErrorBefore);
    case verbs::Effect::kPostError:
      return fmt::format("{} of {} posts failed by it", counters.happened, counters.operations);
    case verbs::Effect::kCompletionRewrite:
      return fmt::format("{} of {} successful completions were delivered as errors",
                         counters.happened, counters.operations);
    case verbs::Effect::kCompletionLoss:
      return fmt::format("{} of {} completions were swallowed", counters.happened,
                         counters.operations);
    case verbs::Effect::kQpDelay:
      return fmt::format(
          "{} of {} completions were delivered late, by {:.3f} ms on average and {:.3f} ms at "
          "least; {} are held now",
          counters.happened, counters.operations, meanMs(counters),
          static_cast<double>(counters.shortestNanoseconds) / kNanosecondsPerMs, counters.held);
    case verbs::Effect::kQpRate:
      break;
  }
  return fmt::format("{}; {} bytes in {} completions were let through, {} are held now",
                     ratesInWords(rule, achieved), counters.releasedBytes, counters.released,
                     counters.held);
}

/// Each process has the rate for itself. Where nothing had to wait for long it was not tried.
bool ratesWereKept(const verbs::Rule& rule, Rates achieved) {
  const double limit = static_cast<double>(rule.bitsPerSecond) * kRateTolerance;
  const auto kept = [&](const std::optional<MeasuredRate>& rate) {
    return !rate || (rate->rate > 0 && static_cast<double>(rate->rate) <= limit);
  };
  const auto measured = [](const std::optional<MeasuredRate>& rate) { return rate.has_value(); };
  return std::ranges::any_of(achieved, measured) && std::ranges::all_of(achieved, kept);
}

bool happened(const verbs::Rule& rule, const verbs::Counters& counters, Rates achieved) {
  switch (rule.effect) {
    case verbs::Effect::kQpDelay:
      return counters.released > 0 &&
             counters.shortestNanoseconds >= static_cast<std::uint64_t>(rule.delay.count());
    case verbs::Effect::kQpRate:
      return ratesWereKept(rule, achieved);
    default:
      return counters.happened > 0;
  }
}

}  // namespace

namespace {

std::map<std::string, std::int64_t> numbersOf(
    const verbs::Counters& counters, std::span<const std::optional<MeasuredRate>> achieved) {
  std::map<std::string, std::int64_t> numbers;
  for (const auto& [name, value] : {std::pair{"operations", counters.operations},
                                    {"bytes", counters.bytes},
                                    {"struck", counters.struck},
                                    {"happened", counters.happened},
                                    {"held", counters.held},
                                    {"released", counters.released},
                                    {"released_bytes", counters.releasedBytes},
                                    {"dropped", counters.dropped},
                                    {"genuine_completion_errors", counters.genuineErrors},
                                    {"genuine_post_errors", counters.genuinePostErrors},
                                    {"flushed", counters.flushErrors},
                                    {"full_queues", counters.fullQueues},
                                    {"failures", counters.failures},
                                    {"in_error_before", counters.inErrorBefore},
                                    {"unseen", counters.uncovered},
                                    {"queue_pairs", counters.queuePairs}}) {
    numbers[name] = static_cast<std::int64_t>(value);
  }
  // Of the slowest process, as each has the rate for itself.
  constexpr const char* kAchieved = "achieved_bits_per_second";
  for (const std::optional<MeasuredRate>& rate : achieved) {
    if (!rate) continue;
    const auto found = numbers.find(kAchieved);
    if (found == numbers.end() || rate->rate < found->second) numbers[kAchieved] = rate->rate;
  }
  return numbers;
}

}  // namespace

Evidence judgeVerbs(const verbs::Rule& rule, const verbs::Counters& counters,
                    std::span<const std::optional<MeasuredRate>> achieved) {
  std::string observed = seen(rule, counters, achieved);
  if (achieved.size() > 1) {
    observed += fmt::format(
        "; counted in {} processes together, each of which has trigger, budget and rate for itself",
        achieved.size());
  }
  observed += fmt::format(
      "; genuine errors meanwhile: {} completions, {} posts; flushed: {}; posts to a full queue: "
      "{}",
      counters.genuineErrors, counters.genuinePostErrors, counters.flushErrors,
      counters.fullQueues);
  if (counters.dropped > 0) {
    observed +=
        fmt::format("; {} that were held went with their queue pairs or queues", counters.dropped);
  }
  if (counters.uncovered > 0) {
    observed += fmt::format(
        "; {} completions passed the shim unseen (extended completion queues, no memory)",
        counters.uncovered);
  }
  return {std::string(effectName(rule.effect)), std::string(observation(rule.effect)),
          std::move(observed), happened(rule, counters, achieved), numbersOf(counters, achieved)};
}

verbs::Counters sum(verbs::Counters one, const verbs::Counters& other) {
  one.operations += other.operations;
  one.bytes += other.bytes;
  one.struck += other.struck;
  one.happened += other.happened;
  one.held += other.held;
  one.released += other.released;
  one.dropped += other.dropped;
  one.releasedBytes += other.releasedBytes;
  one.heldNanoseconds += other.heldNanoseconds;
  if (one.shortestNanoseconds == 0) {
    one.shortestNanoseconds = other.shortestNanoseconds;
  } else if (other.shortestNanoseconds != 0) {
    one.shortestNanoseconds = std::min(one.shortestNanoseconds, other.shortestNanoseconds);
  }
  one.genuineErrors += other.genuineErrors;
  one.flushErrors += other.flushErrors;
  one.genuinePostErrors += other.genuinePostErrors;
  one.fullQueues += other.fullQueues;
  one.failures += other.failures;
  one.inErrorBefore += other.inErrorBefore;
  one.uncovered += other.uncovered;
  one.queuePairs += other.queuePairs;
  return one;
}

}  // namespace faultline::injector
