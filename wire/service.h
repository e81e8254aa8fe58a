#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_fields.h"
#include "base/number_range.h"
#include "base/units.h"
#include "wire/holder.h"
#include "wire/message.h"

/// Between who wants a fault of an interface of this host, and the host's fault service (`faultline
/// faultd`, docs/safety.md). One connection to its socket is one fault: ServiceStrike, then calls,
/// each with one HolderAnswer, for which the next one waits. A strike that is refused is answered
/// so, too: each of its calls says why. HolderBroken comes unasked: what the fault does over time
/// has failed, or its longest is over, and calls may follow; or the service drops the connection
/// (lease, what is no message, its own end), and then it is the last that comes. The fault is
/// undone with the end of the connection. Moments are those of the host's monotonic clock.
namespace faultline::wire {

/// Where the service listens.
inline constexpr std::string_view kServiceSocket = "/run/faultline/faultd.sock";
inline constexpr Duration kLongestLease = std::chrono::minutes(10);

/// What is wanted. A first message.
struct ServiceStrike {
  static constexpr const char* kType = "strike";
  int version = kAgentVersion;
  std::string kind{};
  std::map<std::string, std::string> parameters{};  ///< as a scenario writes them
  std::string interface {};                         ///< "eth1"
  /// It is undone at the latest so long after it was applied; the policy has its word on it.
  Duration longest{};
  /// It is undone when nothing was heard on the connection for so long. From the first message on.
  /// kLongestLease at most.
  Duration lease{};
  std::vector<std::string> keep{};  ///< addresses that must stay within reach
  std::string run{};                ///< name of the run, for people
};

/// For the lease; any other message does as well. Has no answer.
struct StillThere {
  static constexpr const char* kType = "still_there";
};

/// What could be struck, and what is? The other first message, and the only one: ServiceFacts is
/// the answer, and ends the connection.
struct AskService {
  static constexpr const char* kType = "ask";
  int version = kAgentVersion;
  std::vector<std::string> interfaces{};  ///< names; empty: all of this host
  std::vector<std::string> keep{};        ///< as in ServiceStrike
};

using ToService = std::variant<ServiceStrike, AskService, CallFault, StillThere>;

/// The policy of this host, as data.
struct ServicePolicy {
  std::string words{};  ///< for people
  std::vector<std::string> kinds{};
  Duration longest{};
  int mostOfNode = 0;  ///< strikes at once on this host
  int mostOfJob = 0;   ///< and of one job
};

/// Whether an interface may be struck now.
struct InterfaceForecast {
  std::string interface {};
  std::string whyNot{};  ///< empty: it may, by each kind of the policy, for its longest
};

/// A strike that is in the journal.
struct KnownStrike {
  std::string id{};
  std::string kind{};
  std::string interface {};
  std::string user{};
  std::string job{};   ///< "job 17", "user alice"
  bool held = false;   ///< by a process that lives; else it is left, and is about to be undone
  std::string left{};  ///< why it is not undone yet, where that was tried
};

struct ServiceFacts {
  static constexpr const char* kType = "facts";
  std::string program{};             ///< its version
  std::vector<std::string> kinds{};  ///< of faults that it can do
  std::optional<ServicePolicy> policy{};
  std::string whyNoPolicy{};  ///< where there is none that can be read
  std::string user{};         ///< who asks
  std::string job{};          ///< "job 17", "user alice": whose strikes are counted together
  std::string whyNot{};       ///< why it strikes nothing for who asks; empty: it would
  std::vector<InterfaceForecast> interfaces{};
  std::vector<KnownStrike> strikes{};  ///< held, or left
  /// Entries of the journal that cannot be read, each with why: what they have struck is not known,
  /// and nobody undoes it.
  std::vector<std::string> unread{};
};

using FromService = std::variant<ServiceFacts, HolderAnswer, HolderBroken, Gone>;

template <typename V>
void visitFields(V& v, Of<ServiceStrike> auto& strike) {
  v.required("version", strike.version);
  v.required("kind", strike.kind);
  v.required("parameters", strike.parameters);
  v.required("interface", strike.interface);
  v.required("longest", strike.longest, kNotNegative);
  v.required("lease", strike.lease, kNotNegative);
  v.required("keep", strike.keep);
  v.required("run", strike.run);
}

template <typename V>
void visitFields(V& /*v*/, Of<StillThere> auto& /*message*/) {}

template <typename V>
void visitFields(V& v, Of<AskService> auto& question) {
  v.required("version", question.version);
  v.required("interfaces", question.interfaces);
  v.required("keep", question.keep);
}

template <typename V>
void visitFields(V& v, Of<ServicePolicy> auto& policy) {
  v.required("words", policy.words);
  v.required("kinds", policy.kinds);
  v.required("longest", policy.longest, kNotNegative);
  v.required("most_of_node", policy.mostOfNode, kNotNegative);
  v.required("most_of_job", policy.mostOfJob, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<InterfaceForecast> auto& forecast) {
  v.required("interface", forecast.interface);
  v.required("why_not", forecast.whyNot);
}

template <typename V>
void visitFields(V& v, Of<KnownStrike> auto& strike) {
  v.required("id", strike.id);
  v.required("kind", strike.kind);
  v.required("interface", strike.interface);
  v.required("user", strike.user);
  v.required("job", strike.job);
  v.required("held", strike.held);
  v.required("left", strike.left);
}

template <typename V>
void visitFields(V& v, Of<ServiceFacts> auto& facts) {
  v.required("program", facts.program);
  v.required("kinds", facts.kinds);
  v.required("policy", facts.policy);
  v.required("why_no_policy", facts.whyNoPolicy);
  v.required("user", facts.user);
  v.required("job", facts.job);
  v.required("why_not", facts.whyNot);
  v.required("interfaces", facts.interfaces);
  v.required("strikes", facts.strikes);
  v.required("unread", facts.unread);
}

/// Without a longest time or a lease nobody would end it: kInvalidArgument, as for a
/// lease that is too long.
Status checkFields(const ServiceStrike& strike);

}  // namespace faultline::wire
