#include "injector/verbs/rule.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/random.h"
#include "injector/verbs/error_names.h"

namespace faultline::injector::verbs {
namespace {

constexpr std::array<std::pair<std::string_view, Effect>, 6> kEffects{{
    {"qp_error", Effect::kQpError},
    {"post_error", Effect::kPostError},
    {"completion_rewrite", Effect::kCompletionRewrite},
    {"completion_loss", Effect::kCompletionLoss},
    {"qp_delay", Effect::kQpDelay},
    {"qp_rate", Effect::kQpRate},
}};

constexpr std::array<std::pair<std::string_view, Side>, 3> kSides{{
    {"send", Side::kSend},
    {"recv", Side::kRecv},
    {"both", Side::kBoth},
}};

template <typename Table>
auto find(const Table& table, std::string_view name)
    -> std::optional<typename Table::value_type::second_type> {
  const auto found =
      std::ranges::find_if(table, [&](const auto& row) { return row.first == name; });
  if (found == table.end()) return std::nullopt;
  return found->second;
}

template <typename Table, typename Value>
std::string_view nameOf(const Table& table, Value value) {
  return std::ranges::find_if(table, [&](const auto& row) { return row.second == value; })->first;
}

template <typename Table>
bool hasValue(const Table& table, int value) {
  return std::ranges::any_of(table, [&](const auto& row) { return row.second == value; });
}

}  // namespace

std::string_view effectName(Effect effect) { return nameOf(kEffects, effect); }
std::optional<Effect> findEffect(std::string_view name) { return find(kEffects, name); }
std::string_view sideName(Side side) { return nameOf(kSides, side); }
std::optional<Side> findSide(std::string_view name) { return find(kSides, name); }
std::optional<int> findStatus(std::string_view name) { return find(kStatuses, name); }
std::optional<int> findErrno(std::string_view name) { return find(kErrnos, name); }

bool matches(const Match& match, const QueuePairFacts& facts) {
  const auto meant = [](std::uint32_t asked, std::uint32_t is) {
    return asked == 0 || asked == is;
  };
  return (match.device.empty() || match.device == facts.device) &&
         meant(match.number, facts.number) && meant(match.peerNumber, facts.peerNumber) &&
         meant(match.peerLid, facts.peerLid) &&
         (match.peerGid.empty() || match.peerGid == facts.peerGid);
}

std::string inWords(const Match& match) {
  std::string words =
      match.number != 0 ? fmt::format("queue pair {}", match.number) : std::string("queue pairs");
  if (!match.device.empty()) words += fmt::format(" of {}", match.device);
  if (match.peerNumber != 0) words += fmt::format(" with peer {}", match.peerNumber);
  if (match.peerLid != 0) words += fmt::format(" to LID {}", match.peerLid);
  if (!match.peerGid.empty()) words += fmt::format(" to GID {}", match.peerGid);
  return words;
}

std::size_t chooseOne(std::size_t count, std::uint64_t seed) {
  return static_cast<std::size_t>(Random(seed).below(count));
}

Status check(const Rule& rule) {
  const auto wrong = [&](std::string_view what) {
    return errorf(Code::kInvalidArgument, "{}: {}", effectName(rule.effect), what);
  };
  if (!(rule.trigger.probability > 0 && rule.trigger.probability <= 1)) {
    return wrong("the probability is not above 0 and at most 1");
  }
  if (rule.lease < kShortestLease || rule.lease > kLongestLease) {
    return wrong("the lease is not between 100 ms and a minute");
  }
  if (rule.effect == Effect::kPostError && !hasValue(kErrnos, rule.error)) {
    return wrong("that is no errno that posting returns");
  }
  if (rule.effect == Effect::kCompletionRewrite && !hasValue(kStatuses, rule.status)) {
    return wrong("that is no error status of a completion");
  }
  if (rule.effect == Effect::kQpDelay && (rule.delay <= 0ns || rule.delay > kLongestDelay)) {
    return wrong("the delay is not above 0 and at most 10 s");
  }
  if (rule.effect == Effect::kQpRate && rule.bitsPerSecond == 0) return wrong("the rate is 0");
  return okStatus();
}

}  // namespace faultline::injector::verbs
