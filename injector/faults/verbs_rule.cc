#include "injector/faults/verbs_rule.h"

#include <arpa/inet.h>

#include <array>
#include <optional>
#include <string_view>

namespace faultline::injector {
namespace {

constexpr std::string_view kAny = "any";

std::uint32_t number(const FaultParameters& parameters, std::string_view name) {
  return static_cast<std::uint32_t>(parameters.get<std::int64_t>(name));
}

std::uint64_t count(const FaultParameters& parameters, std::string_view name) {
  return static_cast<std::uint64_t>(parameters.get<std::int64_t>(name));
}

/// The one spelling that the shim uses.
Result<std::string> spelled(const std::string& gid) {
  in6_addr address{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_pton(AF_INET6, gid.c_str(), &address) != 1 ||
      ::inet_ntop(AF_INET6, &address, text.data(), text.size()) == nullptr) {
    return errorf(Code::kInvalidArgument,
                  "dgid: '{}' is no GID: write it as an IPv6 address, like fe80::1 or "
                  "::ffff:10.0.0.2",
                  gid);
  }
  return std::string(text.data());
}

/// A choice of the table of faults that the rules do not know is a mistake of this program's.
template <typename T>
Result<T> known(const std::optional<T>& found, std::string_view parameter,
                const FaultParameters& parameters) {
  if (found) return *found;
  return errorf(Code::kInternal, "{}: '{}' is a choice that has no meaning here", parameter,
                parameters.get<std::string>(parameter));
}

}  // namespace

Result<verbs::Rule> verbsRule(verbs::Effect effect, const FaultParameters& parameters) {
  verbs::Rule rule{.effect = effect, .lease = kVerbsLease};
  const auto& device = parameters.get<std::string>("device");
  const auto& gid = parameters.get<std::string>("dgid");
  if (device != kAny) rule.match.device = device;
  if (gid != kAny) {
    ASSIGN_OR_RETURN(rule.match.peerGid, spelled(gid));
  }
  rule.match.number = number(parameters, "qpn");
  rule.match.peerNumber = number(parameters, "peer_qpn");
  rule.match.peerLid = number(parameters, "dlid");
  rule.one = parameters.get<std::string>("pick") == "one";
  rule.trigger.seed = count(parameters, "seed");
  if (parameters.has("side")) {
    const auto side = verbs::findSide(parameters.get<std::string>("side"));
    ASSIGN_OR_RETURN(rule.side, known(side, "side", parameters));
  }
  if (parameters.has("budget")) {
    rule.trigger.afterOperations = count(parameters, "after_operations");
    rule.trigger.afterBytes = static_cast<std::uint64_t>(parameters.get<Size>("after_bytes").bytes);
    rule.trigger.budget = count(parameters, "budget");
  }
  if (parameters.has("probability")) {  // a link that carries some of it would be none
    constexpr double kPercent = 100;
    rule.trigger.probability = parameters.get<Percent>("probability").value / kPercent;
  }
  switch (effect) {
    case verbs::Effect::kQpError:
      rule.side = verbs::Side::kBoth;  // its operations are posts of either kind
      break;
    case verbs::Effect::kPostError: {
      const auto error = verbs::findErrno(parameters.get<std::string>("errno"));
      ASSIGN_OR_RETURN(rule.error, known(error, "errno", parameters));
      break;
    }
    case verbs::Effect::kCompletionRewrite: {
      const auto status = verbs::findStatus(parameters.get<std::string>("status"));
      ASSIGN_OR_RETURN(rule.status, known(status, "status", parameters));
      break;
    }
    case verbs::Effect::kCompletionLoss:
      break;
    case verbs::Effect::kQpDelay:
      rule.delay = parameters.get<Duration>("delay");
      break;
    case verbs::Effect::kQpRate:
      rule.bitsPerSecond = static_cast<std::uint64_t>(parameters.get<Rate>("rate").bitsPerSecond);
      break;
  }
  RETURN_IF_ERROR(check(rule));
  return rule;
}

}  // namespace faultline::injector
