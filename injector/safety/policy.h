#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

/// What makes faults on machines that people own safe (docs/safety.md).
namespace faultline::safety {

/// Where the policy of a machine is.
inline constexpr std::string_view kPolicyPath = "/etc/faultline/policy.yaml";

inline constexpr std::size_t kMostPolicyBytes = 64 * 1024;

/// What the owner of a machine allows.
struct Policy {
  std::vector<std::string> mayStrike{};  ///< names of interfaces, and PCI addresses
  std::vector<std::string> kinds{};      ///< of faults
  Duration longest{};                    ///< of one strike
  int mostOfNode = 1;                    ///< strikes at once on this machine
  int mostOfJob = 1;                     ///< and of one job
  /// Announces maintenance before a strike, and takes that back after it: program and arguments,
  /// run without a shell; empty: nothing is to be done.
  std::vector<std::string> before{};
  std::vector<std::string> after{};
  Duration commandLimit = std::chrono::seconds(30);  ///< for each of the two
  /// Addresses of those whom this machine must go on reaching, as `inject --keep`.
  std::vector<std::string> keep{};
  /// Who may ask the fault service, beside root: names of users, and of groups.
  std::vector<std::string> users{};
  std::vector<std::string> groups{};
};

/// Reads YAML text; `source` names it in messages. kInvalidArgument with a line
/// "source:line:column: message" for each mistake. Pure.
Result<Policy> parsePolicy(std::string_view text, std::string_view source,
                           std::span<const std::string_view> knownKinds);

/// One strike that somebody wants, and what there is already.
struct Request {
  std::string interface {};
  std::string pci{};  ///< empty: it has no such address
  std::string kind{};
  Duration length{};
  int heldOnNode = 0;  ///< strikes that are held, or left
  int heldByJob = 0;   ///< those of the same job
};

/// ok, or why not and what to do: kPermissionDenied, or kUnavailable for what may be asked later.
/// Pure.
Status allows(const Policy& policy, const Request& request);

/// Who asks the fault service.
struct Caller {
  std::uint32_t uid = 0;
  std::string user{};                 ///< its name, or the number where it has none
  std::vector<std::string> groups{};  ///< names of those that its process is in
};

/// ok, or kPermissionDenied with what to do. Pure.
Status mayAsk(const Policy& policy, const Caller& caller);

/// What it allows, in a sentence or two.
std::string inWords(const Policy& policy);

/// The text of a policy to start from, that allows this.
std::string policyToStartFrom(std::string_view interface, std::string_view kind);

}  // namespace faultline::safety
