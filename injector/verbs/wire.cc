#include "injector/verbs/wire.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

namespace faultline::injector::verbs {
namespace {

constexpr std::uint64_t kMost32 = UINT32_MAX;
constexpr std::uint64_t kMostInt = INT32_MAX;
/// Probabilities travel as whole parts of a billion, so that no locale spells them.
constexpr double kParts = 1e9;

using CounterField = std::pair<std::string_view, std::uint64_t Counters::*>;
constexpr std::array<CounterField, 18> kCounterFields{{
    {"operations", &Counters::operations},
    {"bytes", &Counters::bytes},
    {"struck", &Counters::struck},
    {"happened", &Counters::happened},
    {"held", &Counters::held},
    {"released", &Counters::released},
    {"dropped", &Counters::dropped},
    {"released_bytes", &Counters::releasedBytes},
    {"held_ns", &Counters::heldNanoseconds},
    {"shortest_ns", &Counters::shortestNanoseconds},
    {"genuine_errors", &Counters::genuineErrors},
    {"flush_errors", &Counters::flushErrors},
    {"genuine_post_errors", &Counters::genuinePostErrors},
    {"full_queues", &Counters::fullQueues},
    {"failures", &Counters::failures},
    {"in_error_before", &Counters::inErrorBefore},
    {"uncovered", &Counters::uncovered},
    {"queue_pairs", &Counters::queuePairs},
}};

using ShimField = std::pair<std::string_view, std::uint64_t ShimFacts::*>;
constexpr std::array<ShimField, 7> kShimFields{{
    {"pid", &ShimFacts::pid},
    {"contexts", &ShimFacts::contexts},
    {"missed_contexts", &ShimFacts::missedContexts},
    {"queue_pairs", &ShimFacts::queuePairs},
    {"completion_queues", &ShimFacts::completionQueues},
    {"missed_queue_pairs", &ShimFacts::missedQueuePairs},
    {"armed", &ShimFacts::armed},
}};

template <typename Fields, typename Record>
void addAll(Message& message, const Fields& fields, const Record& record) {
  for (const auto& [key, member] : fields) message.add(key, record.*member);
}

template <typename Record, typename Fields>
Result<Record> readAll(const Message& message, const Fields& fields) {
  Record record;
  for (const auto& [key, member] : fields) {
    ASSIGN_OR_RETURN(record.*member, message.number(key));
  }
  return record;
}

constexpr std::array<std::string_view, 18> kRuleKeys{
    "effect", "device", "qpn",    "peer_qpn", "peer_lid", "peer_gid",
    "one",    "side",   "after",  "bytes",    "parts",    "budget",
    "seed",   "error",  "status", "delay_ns", "rate",     "lease_ns"};

std::uint64_t nanoseconds(Duration duration) {
  return static_cast<std::uint64_t>(std::max<Duration::rep>(duration.count(), 0));
}

std::string textOf(const Message& message, std::string_view key) {
  return std::string(message.find(key).value_or(""));
}

/// The value of "key=value" among words, which is taken off the front.
std::optional<std::string_view> takeWord(std::string_view& text, std::string_view key) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  if (word.size() <= key.size() || !word.starts_with(key) || word[key.size()] != '=') {
    return std::nullopt;
  }
  return word.substr(key.size() + 1);
}

std::optional<std::uint32_t> takeNumber(std::string_view& text, std::string_view key) {
  const auto word = takeWord(text, key);
  std::uint32_t value = 0;
  if (!word || word->empty()) return std::nullopt;
  const auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), value);
  if (error != std::errc{} || end != word->data() + word->size()) return std::nullopt;
  return value;
}

/// Names of devices have no blanks; should one come, it must not make two words.
std::string oneWord(std::string text) {
  std::ranges::replace(text, ' ', '_');
  return text;
}

}  // namespace

void addRule(Message& message, const Rule& rule) {
  message.add("effect", effectName(rule.effect));
  message.add("device", rule.match.device);
  message.add("qpn", rule.match.number);
  message.add("peer_qpn", rule.match.peerNumber);
  message.add("peer_lid", rule.match.peerLid);
  message.add("peer_gid", rule.match.peerGid);
  message.add("one", rule.one ? 1 : 0);
  message.add("side", sideName(rule.side));
  message.add("after", rule.trigger.afterOperations);
  message.add("bytes", rule.trigger.afterBytes);
  message.add("parts", static_cast<std::uint64_t>(rule.trigger.probability * kParts + 0.5));
  message.add("budget", rule.trigger.budget);
  message.add("seed", rule.trigger.seed);
  message.add("error", static_cast<std::uint64_t>(rule.error));
  message.add("status", static_cast<std::uint64_t>(rule.status));
  message.add("delay_ns", nanoseconds(rule.delay));
  message.add("rate", rule.bitsPerSecond);
  message.add("lease_ns", nanoseconds(rule.lease));
}

Result<Rule> readRule(const Message& message) {
  for (const auto& [key, value] : message.fields()) {
    if (std::ranges::count(kRuleKeys, std::string_view(key)) == 0) {
      return errorf(Code::kInvalidArgument, "a rule has no field '{}'", key);
    }
  }
  Rule rule;
  const auto effect = findEffect(message.find("effect").value_or(""));
  const auto side = findSide(message.find("side").value_or(""));
  if (!effect || !side) return errorf(Code::kInvalidArgument, "unknown effect or side");
  rule.effect = *effect;
  rule.side = *side;
  rule.match.device = textOf(message, "device");
  rule.match.peerGid = textOf(message, "peer_gid");
  constexpr auto kMostTime = static_cast<std::uint64_t>(INT64_MAX);
  ASSIGN_OR_RETURN(const std::uint64_t qpn, message.number("qpn", kMost32));
  ASSIGN_OR_RETURN(const std::uint64_t peer_qpn, message.number("peer_qpn", kMost32));
  ASSIGN_OR_RETURN(const std::uint64_t peer_lid, message.number("peer_lid", UINT16_MAX));
  ASSIGN_OR_RETURN(const std::uint64_t one, message.number("one", 1));
  ASSIGN_OR_RETURN(const std::uint64_t parts,
                   message.number("parts", static_cast<std::uint64_t>(kParts)));
  ASSIGN_OR_RETURN(const std::uint64_t error, message.number("error", kMostInt));
  ASSIGN_OR_RETURN(const std::uint64_t status, message.number("status", kMostInt));
  ASSIGN_OR_RETURN(const std::uint64_t delay, message.number("delay_ns", kMostTime));
  ASSIGN_OR_RETURN(const std::uint64_t lease, message.number("lease_ns", kMostTime));
  ASSIGN_OR_RETURN(rule.trigger.afterOperations, message.number("after"));
  ASSIGN_OR_RETURN(rule.trigger.afterBytes, message.number("bytes"));
  ASSIGN_OR_RETURN(rule.trigger.budget, message.number("budget"));
  ASSIGN_OR_RETURN(rule.trigger.seed, message.number("seed"));
  ASSIGN_OR_RETURN(rule.bitsPerSecond, message.number("rate"));
  rule.match.number = static_cast<std::uint32_t>(qpn);
  rule.match.peerNumber = static_cast<std::uint32_t>(peer_qpn);
  rule.match.peerLid = static_cast<std::uint32_t>(peer_lid);
  rule.one = one == 1;
  rule.trigger.probability = static_cast<double>(parts) / kParts;
  rule.error = static_cast<int>(error);
  rule.status = static_cast<int>(status);
  rule.delay = Duration(static_cast<Duration::rep>(delay));
  rule.lease = Duration(static_cast<Duration::rep>(lease));
  RETURN_IF_ERROR(check(rule));
  return rule;
}

void addCounters(Message& message, const Counters& counters) {
  addAll(message, kCounterFields, counters);
}
Result<Counters> readCounters(const Message& message) {
  return readAll<Counters>(message, kCounterFields);
}

void addShimFacts(Message& message, const ShimFacts& facts) { addAll(message, kShimFields, facts); }
Result<ShimFacts> readShimFacts(const Message& message) {
  return readAll<ShimFacts>(message, kShimFields);
}

std::string writeFacts(const QueuePairFacts& facts) {
  return fmt::format("dev={} qpn={} type={} state={} peer_qpn={} peer_lid={} peer_gid={}",
                     oneWord(facts.device), facts.number, oneWord(facts.type), oneWord(facts.state),
                     facts.peerNumber, facts.peerLid, facts.peerGid);
}

Result<QueuePairFacts> readFacts(std::string_view text) {
  const auto device = takeWord(text, "dev");
  const auto number = takeNumber(text, "qpn");
  const auto type = takeWord(text, "type");
  const auto state = takeWord(text, "state");
  const auto peer_number = takeNumber(text, "peer_qpn");
  const auto peer_lid = takeNumber(text, "peer_lid");
  const auto peer_gid = takeWord(text, "peer_gid");
  if (!device || !number || !type || !state || !peer_number || !peer_lid || !peer_gid ||
      !text.empty()) {
    return errorf(Code::kInvalidArgument, "that describes no queue pair");
  }
  return QueuePairFacts{std::string(*device),   *number,
                        *peer_number,           *peer_lid,
                        std::string(*peer_gid), std::string(*type),
                        std::string(*state)};
}

Message errorMessage(const Status& status) {
  Message message("error");
  message.add("code", codeName(status.code()));
  message.add("text", status.message());
  return message;
}

Status readError(const Message& message) {
  constexpr std::array kCodes{Code::kInvalidArgument,
                              Code::kNotFound,
                              Code::kAlreadyExists,
                              Code::kPermissionDenied,
                              Code::kUnsupported,
                              Code::kUnavailable,
                              Code::kIo,
                              Code::kInternal};
  const std::string_view name = message.find("code").value_or("");
  const std::string text = textOf(message, "text");
  for (const Code code : kCodes) {
    if (codeName(code) == name) return Status(code, text);
  }
  return Status(Code::kInternal, text);
}

}  // namespace faultline::injector::verbs
