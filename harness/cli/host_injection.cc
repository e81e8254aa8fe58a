#include "harness/cli/host_injection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "base/printable.h"
#include "base/units.h"
#include "base/user_name.h"
#include "harness/cli/cli.h"
#include "harness/cli/host_strike.h"
#include "harness/cli/inject_target.h"
#include "harness/cli/output.h"
#include "harness/cli/separate_process.h"
#include "injector/netlink/indispensable.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/needed_peers.h"
#include "injector/safety/blast_radius.h"
#include "injector/safety/policy_file.h"
#include "injector/safety/strike.h"

namespace faultline::cli {
namespace {

constexpr std::string_view kInject = "inject";
constexpr std::string_view kHostExample = "eth1";
constexpr Duration kLockPatience = 5s;
constexpr Duration kRescuePatience = 30s;
/// Around what was asked for: looking, evidence, putting back.
constexpr Duration kAroundStrike = 30s;

/// All that is known before anything is decided.
struct Plan {
  const injector::FaultKind* kind = nullptr;
  std::map<std::string, std::string> texts;  ///< parameters as written
  injector::FaultParameters parameters;
  safety::HostFault fault;
  safety::Target target;
  safety::BlastRadius radius;
  Duration length{};
};

/// In which job it is: that of the scheduler, or else whatever this user does.
std::string jobName(const std::string& user) {
  const char* const job = std::getenv("SLURM_JOB_ID");
  return job != nullptr ? fmt::format("job {}", job) : fmt::format("user {}", user);
}

Result<Plan> makePlan(const InjectOptions& options, const injector::FaultKind& kind,
                      netlink::Socket& socket) {
  Plan plan;
  plan.kind = &kind;
  ASSIGN_OR_RETURN(const safety::Wish wish, hostTarget(kind.name, options.target));
  ASSIGN_OR_RETURN(plan.texts, parsePairs(options.parameters, "param", "how=admin"));
  for (const auto& [name, value] : kind.hostDefaults) plan.texts.emplace(name, value);
  ASSIGN_OR_RETURN(plan.parameters, injector::FaultParameters::parse(kind, plan.texts));
  auto fault = kind.makeOnHost(plan.parameters);
  if (!fault.ok()) {
    return errorf(Code::kInvalidArgument, "{}: {}", kind.name, fault.status().message());
  }
  plan.fault = *std::move(fault);
  ASSIGN_OR_RETURN(const auto present, safety::presentTargets(socket));
  ASSIGN_OR_RETURN(plan.target, safety::choose(present, wish));
  ASSIGN_OR_RETURN(plan.radius, safety::blastRadius(socket, plan.target));
  return plan;
}

Result<safety::Policy> policyOf(const InjectOptions& options, const Plan& plan) {
  const auto kinds = hostFaults();
  auto policy = safety::readPolicy(options.policy, kinds);
  if (policy.status().code() != Code::kNotFound) return policy;
  return errorf(Code::kPermissionDenied,
                "there is no policy {}: without one nothing on a host is touched. Its owner writes "
                "it, as root, for example:\n\n{}",
                options.policy, safety::policyToStartFrom(plan.target.interface, plan.kind->name));
}

/// What must not be cut off, whatever a policy says.
Status refuseManagement(netlink::Socket& socket, const Plan& plan, const safety::Policy& policy,
                        std::vector<std::string> keep) {
  keep.insert(keep.end(), policy.keep.begin(), policy.keep.end());
  if (plan.target.interface == "lo") {
    return errorf(Code::kPermissionDenied,
                  "lo is this machine's way to itself, which programs cannot do without");
  }
  std::vector<netlink::NeededPeer> peers = netlink::neededPeers();
  for (const std::string& address : keep) {
    peers.push_back(
        {address, "who is to be kept (--keep, or keep in the policy)", "choose another interface"});
  }
  ASSIGN_OR_RETURN(const auto why, netlink::whyIndispensable(socket, plan.target.ifindex, peers));
  if (!why) return okStatus();
  return errorf(Code::kPermissionDenied, "{} {}", plan.target.interface, *why);
}

/// Whether policy and management path allow it, with what is held already.
Status allowed(netlink::Socket& socket, const Plan& plan, const safety::Policy& policy,
               const std::vector<std::string>& keep, const safety::Kept& kept,
               const std::string& job) {
  RETURN_IF_ERROR(refuseManagement(socket, plan, policy, keep));
  safety::Request request{.interface = plan.target.interface,
                          .pci = plan.target.pci,
                          .kind = std::string(plan.kind->name),
                          .length = plan.length};
  for (const safety::Entry& entry : kept.entries) {
    ++request.heldOnNode;
    if (entry.job == job) ++request.heldByJob;
    if (safety::sameOf({plan.target}, entry.target).ok()) {
      return errorf(Code::kUnavailable,
                    "{} is struck already ({}); wait for its end, or see 'faultline restore'",
                    plan.target.interface, safety::inWords(entry));
    }
  }
  return safety::allows(policy, request);
}

std::int64_t wallSeconds() {
  return duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

safety::Entry entryOf(const Plan& plan, const safety::Policy& policy, const std::string& id) {
  safety::Entry entry{.id = id, .bootId = safety::currentBoot()};
  entry.holder = safety::holderOf(::getpid());
  entry.target = plan.target;
  entry.kind = plan.kind->name;
  entry.parameters = plan.texts;
  entry.operations = plan.fault.operations;
  entry.before = policy.before;
  entry.after = policy.after;
  entry.commandLimit = policy.commandLimit;
  entry.beganAt = wallSeconds();
  entry.endsAt = entry.beganAt + std::chrono::ceil<std::chrono::seconds>(plan.length).count();
  entry.endsMonotonic = now() + plan.length;
  entry.user = userName();
  entry.job = jobName(entry.user);
  return entry;
}

Json radiusJson(const Plan& plan) {
  return {{"interface", plan.target.interface},
          {"pci", plan.target.pci},
          {"mac", plan.target.mac},
          {"addresses", plan.radius.addresses},
          {"over", plan.radius.interfaces},
          {"connections", plan.radius.connections}};
}

Json operationsJson(const Plan& plan) {
  Json operations = Json::array();
  for (const safety::Operation& operation : plan.fault.operations) {
    operations.push_back({{"do", safety::commandOf(operation, plan.target.interface)},
                          {"undo", safety::inverseOf(operation, plan.target.interface)}});
  }
  return operations;
}

/// `--dry-run`: what would be done, and whether that would be allowed.
int dryRun(const InjectOptions& options, netlink::Socket& socket, const Plan& plan) {
  const auto policy = policyOf(options, plan);
  Status refusal = policy.status();
  if (policy.ok()) {
    const auto kept = safety::Journal::look(options.journal).read();
    refusal = kept.ok() ? allowed(socket, plan, *policy, options.keep, *kept, jobName(userName()))
                        : kept.status();
  }
  for (const safety::Operation& operation : plan.fault.operations) {
    if (refusal.ok()) refusal = safety::check(operation, socket, plan.target.ifindex);
  }
  if (options.json) {
    print({{"kind", plan.kind->name},
           {"dry_run", true},
           {"blast_radius", radiusJson(plan)},
           {"operations", operationsJson(plan)},
           {"refused", refusal.ok() ? Json() : Json(refusal.message())}});
    return kExitOk;
  }
  std::string text =
      fmt::format("{} for {} strikes {}\n", plan.kind->name, formatDuration(plan.length),
                  safety::inWords(plan.radius, plan.target));
  for (const safety::Operation& operation : plan.fault.operations) {
    text += fmt::format("  do    {}\n  undo  {}, and what the interface has lost is put back\n",
                        safety::commandOf(operation, plan.target.interface),
                        safety::inverseOf(operation, plan.target.interface));
  }
  text += refusal.ok()
              ? "nothing was changed; it would be allowed\n"
              : fmt::format("nothing was changed; it would be refused: {}\n", refusal.message());
  printPlain(text);
  return kExitOk;
}

int report(const InjectOptions& options, const Plan& plan, const StrikeOutcome& outcome) {
  if (!outcome.undone.ok()) {
    return fail(kInject, outcome.undone.withContext("take it back"), kExitNotRestored);
  }
  if (!outcome.status.ok()) return fail(kInject, outcome.status, exitOfFault(outcome.status));
  const bool proven = outcome.evidence.ok;
  if (options.json) {
    Json evidence;
    if (!outcome.interrupted || proven) {
      evidence = {
          {"kind", outcome.evidence.kind}, {"observed", outcome.evidence.observed}, {"ok", proven}};
    }
    Json parameters = Json::object();
    for (const auto& [name, value] : plan.parameters.all()) {
      parameters[name] = formatParameter(value);
    }
    print({{"kind", plan.kind->name},
           {"blast_radius", radiusJson(plan)},
           {"parameters", std::move(parameters)},
           {"operations", operationsJson(plan)},
           {"lasted_ms", toMilliseconds(outcome.lasted)},
           {"interrupted", outcome.interrupted},
           {"reverted", true},
           {"evidence", std::move(evidence)}});
  } else {
    const std::string what = outcome.interrupted
                                 ? (outcome.lasted == Duration(0) ? "interrupted before it began"
                                                                  : "interrupted, and taken back")
                             : proven ? "it happened, and was taken back"
                                      : "INVALID, it left no evidence; it was taken back";
    std::string text =
        fmt::format("{} of {} for {:.0f} ms: {}\n", plan.kind->name, safety::nameOf(plan.target),
                    toMilliseconds(outcome.lasted), what);
    if (!outcome.interrupted || proven) {
      text += fmt::format("evidence ({}): {}\n", outcome.evidence.kind, outcome.evidence.observed);
    }
    printPlain(text);
  }
  if (outcome.interrupted) return kExitInterrupted;
  return proven ? kExitOk : kExitInvalid;
}

/// When the process that held the strike was killed: what is in the journal is undone from here.
int rescue(safety::Journal& journal, const std::string& id, const Status& killed) {
  const auto undone = [&]() -> Result<bool> {
    // A socket of its own: in the other one there may be answers to the process that was killed.
    ASSIGN_OR_RETURN(const UniqueFd here, netlink::currentNamespace());
    ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::open(here.get()));
    ASSIGN_OR_RETURN(const UniqueFd lock, journal.lock(kRescuePatience));
    ASSIGN_OR_RETURN(const safety::Kept kept, journal.read());
    const auto entry = std::ranges::find(kept.entries, id, &safety::Entry::id);
    if (entry == kept.entries.end()) return false;
    RETURN_IF_ERROR(undoLeft(socket, journal, *entry));
    return true;
  }();
  if (!undone.ok()) {
    return fail(kInject,
                errorf(Code::kNotRestored, "{}; {}; 'faultline restore' tries again",
                       killed.message(), undone.status().message()),
                kExitNotRestored);
  }
  return fail(kInject,
              errorf(Code::kUnavailable, "the process that held the strike was killed; {}",
                     *undone ? "what it had changed was taken back, from the journal"
                             : "it had changed nothing, or had taken that back"),
              kExitCannotRun);
}

/// In the process that holds it.
int hold(const InjectOptions& options, netlink::Socket& socket, Plan& plan,
         const safety::Policy& policy, safety::Journal& journal, const std::string& id) {
  auto interrupt = run::Interrupt::watch();
  if (!interrupt.ok()) return fail(kInject, interrupt.status(), kExitCannotRun);
  auto lock = journal.lock(kLockPatience);
  if (!lock.ok()) return fail(kInject, lock.status(), kExitCannotRun);
  const auto kept = journal.read();
  if (!kept.ok()) return fail(kInject, kept.status(), kExitCannotRun);
  const safety::Entry entry = entryOf(plan, policy, id);
  const Status may = allowed(socket, plan, policy, options.keep, *kept, entry.job);
  if (!may.ok()) return fail(kInject, may, kExitCannotRun);
  const StrikeOutcome outcome =
      strike(socket, journal, *std::move(lock), entry, plan.fault, plan.length, *interrupt,
             [&] { return refuseManagement(socket, plan, policy, options.keep); });
  return report(options, plan, outcome);
}

}  // namespace

Result<safety::Wish> hostTarget(std::string_view kind, std::string_view text) {
  safety::Wish wish;
  if (text.find('=') == std::string_view::npos) {
    wish.interface = text;
    return wish;
  }
  ASSIGN_OR_RETURN(const auto target, parseTarget(text));
  constexpr std::array<std::string_view, 3> kKnown{"if", "pci", "mac"};
  for (const auto& [key, value] : target) {
    if (key == "if") {
      wish.interface = value;
    } else if (key == "pci") {
      wish.pci = value;
    } else if (key == "mac") {
      wish.mac = value;
    } else {
      return noSuchKey(kind, key, kKnown, kHostExample);
    }
  }
  if (target.size() > 1) {
    return errorf(Code::kInvalidArgument, "target: one of if, pci and mac names an interface");
  }
  if (!wish.pci.empty() && !safety::isPciAddress(wish.pci)) {
    return errorf(Code::kInvalidArgument, "target: '{}' is no PCI address, like 0000:17:00.0",
                  wish.pci);
  }
  return wish;
}

int injectOnHost(const InjectOptions& options, const injector::FaultKind& kind, Duration length) {
  for (const std::string& address : options.keep) {
    if (safety::isAddress(address)) continue;
    return fail(
        kInject,
        errorf(Code::kInvalidArgument,
               "--keep: '{}' is no address, like 10.0.0.1; names are not looked up", address),
        kExitUsage);
  }
  const auto here = netlink::currentNamespace();
  if (!here.ok()) return fail(kInject, here.status(), kExitCannotRun);
  auto socket = netlink::Socket::open(here->get());
  if (!socket.ok()) return fail(kInject, socket.status(), kExitCannotRun);
  auto plan = makePlan(options, kind, *socket);
  if (!plan.ok()) return fail(kInject, plan.status(), exitOfFault(plan.status()));
  plan->length = length;
  if (options.dryRun) return dryRun(options, *socket, *plan);
  if (const Status can = requireNetAdmin(); !can.ok()) return fail(kInject, can, kExitCannotRun);
  const auto policy = policyOf(options, *plan);
  if (!policy.ok()) return fail(kInject, policy.status(), kExitCannotRun);
  // Once before a process is started, with what needs no lock.
  const Status may = allowed(*socket, *plan, *policy, options.keep, {}, "");
  if (!may.ok()) return fail(kInject, may, kExitCannotRun);
  auto journal = safety::Journal::open(options.journal);
  if (!journal.ok()) return fail(kInject, journal.status(), kExitCannotRun);
  std::cerr << printable(fmt::format("inject: {} for {} strikes {}\n", kind.name,
                                     formatDuration(length),
                                     safety::inWords(plan->radius, plan->target)));
  const std::string id =
      fmt::format("{}-{}-{:08x}", wallSeconds(), ::getpid(), std::random_device()());
  // Nobody else would take it back.
  const TimePoint end = now() + length;
  const auto ended =
      goOnInSeparateProcess(length + kAroundStrike + 2 * policy->commandLimit,
                            [&journal, &id, end] { return now() > end && hangs(*journal, id); });
  if (ended.status().code() == Code::kNotRestored) {
    return rescue(*journal, id, ended.status());
  }
  if (!ended.ok()) return fail(kInject, ended.status(), kExitCannotRun);
  if (ended->has_value()) return **ended;
  return hold(options, *socket, *plan, *policy, *journal, id);
}

}  // namespace faultline::cli
