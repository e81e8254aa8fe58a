#include "harness/cli/host_injection.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/units.h"
#include "base/user_name.h"
#include "harness/cli/carry_out.h"
#include "harness/cli/cli.h"
#include "harness/cli/inject_target.h"
#include "harness/cli/output.h"
#include "harness/cli/separate_process.h"
#include "harness/strike/held_strike.h"
#include "harness/strike/left_strikes.h"
#include "harness/strike/plan.h"
#include "injector/netlink/namespace.h"
#include "injector/safety/blast_radius.h"
#include "injector/safety/journal.h"

namespace faultline::cli {
namespace {

constexpr std::string_view kInject = "inject";
constexpr std::string_view kHostExample = "eth1";
constexpr Duration kRescuePatience = 30s;

/// In which job it is: that of the scheduler, or else whatever this user does.
std::string jobName(const std::string& user) {
  const char* const job = std::getenv("SLURM_JOB_ID");
  return job != nullptr ? fmt::format("job {}", job) : fmt::format("user {}", user);
}

strike::Files filesOf(const InjectOptions& options) {
  return {.policy = options.policy, .journal = options.journal};
}

strike::Asker asker() {
  strike::Asker asker{.user = userName()};
  asker.job = jobName(asker.user);
  return asker;
}

Result<strike::Order> orderOf(const InjectOptions& options, const injector::FaultKind& kind,
                              Duration length) {
  strike::Order order{.kind = &kind, .length = length, .keep = options.keep};
  ASSIGN_OR_RETURN(order.target, hostTarget(kind.name, options.target));
  ASSIGN_OR_RETURN(order.parameters, parsePairs(options.parameters, "param", "how=admin"));
  return order;
}

Json radiusJson(const strike::Plan& plan) {
  return {{"interface", plan.target.interface},
          {"pci", plan.target.pci},
          {"mac", plan.target.mac},
          {"addresses", plan.radius.addresses},
          {"over", plan.radius.interfaces},
          {"connections", plan.radius.connections}};
}

Json operationsJson(const strike::Plan& plan) {
  Json operations = Json::array();
  for (const safety::Operation& operation : plan.fault.operations) {
    operations.push_back({{"do", safety::commandOf(operation, plan.target.interface)},
                          {"undo", safety::inverseOf(operation, plan.target.interface)}});
  }
  return operations;
}

/// `--dry-run`: what would be done, and whether that would be allowed.
int dryRun(const InjectOptions& options, strike::HeldStrike& held) {
  const strike::Plan& plan = held.plan();
  const Status refusal = held.wouldBeAllowed();
  if (options.json) {
    print({{"kind", plan.order.kind->name},
           {"dry_run", true},
           {"blast_radius", radiusJson(plan)},
           {"operations", operationsJson(plan)},
           {"refused", refusal.ok() ? Json() : Json(refusal.message())}});
    return kExitOk;
  }
  std::string text =
      fmt::format("{} for {} strikes {}\n", plan.order.kind->name,
                  formatDuration(plan.order.length), safety::inWords(plan.radius, plan.target));
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

int report(const InjectOptions& options, const strike::HeldStrike& held, const Outcome& outcome) {
  const strike::Plan& plan = held.plan();
  if (!outcome.reverted.ok()) {
    return fail(kInject, outcome.reverted.withContext("take it back"), kExitNotRestored);
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
    print({{"kind", plan.order.kind->name},
           {"blast_radius", radiusJson(plan)},
           {"parameters", std::move(parameters)},
           {"operations", operationsJson(plan)},
           {"lasted_ms", toMilliseconds(outcome.lasted)},
           {"interrupted", outcome.interrupted},
           {"reverted", true},
           {"evidence", std::move(evidence)}});
  } else {
    const std::string what = outcome.interrupted
                                 ? (held.transitions().empty() ? "interrupted before it began"
                                                               : "interrupted, and taken back")
                             : proven ? "it happened, and was taken back"
                                      : "INVALID, it left no evidence; it was taken back";
    std::string text =
        fmt::format("{} of {} for {:.0f} ms: {}\n", plan.order.kind->name,
                    safety::nameOf(plan.target), toMilliseconds(outcome.lasted), what);
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
    RETURN_IF_ERROR(strike::undoLeft(socket, journal, *entry));
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
int hold(const InjectOptions& options, strike::HeldStrike& held) {
  auto interrupt = run::Interrupt::watch();
  if (!interrupt.ok()) return fail(kInject, interrupt.status(), kExitCannotRun);
  const strike::Plan& plan = held.plan();
  const Outcome outcome = carryOut(held, plan.order.length, *interrupt, [&] {
    std::cerr << printable(fmt::format("inject: {} for {} strikes {}\n", plan.order.kind->name,
                                       formatDuration(plan.order.length),
                                       safety::inWords(plan.radius, plan.target)));
  });
  return report(options, held, outcome);
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
  const auto order = orderOf(options, kind, length);
  if (!order.ok()) return fail(kInject, order.status(), exitOfFault(order.status()));
  const std::string id = strike::newId();
  auto held = strike::HeldStrike::make(*order, asker(), filesOf(options), id);
  if (!held.ok()) return fail(kInject, held.status(), exitOfFault(held.status()));
  if (options.dryRun) return dryRun(options, **held);
  // Once before a process is started.
  const Status may = (*held)->mayBegin();
  if (!may.ok()) return fail(kInject, may, kExitCannotRun);
  auto journal = safety::Journal::open(options.journal);
  if (!journal.ok()) return fail(kInject, journal.status(), kExitCannotRun);
  // Nobody else would take it back.
  const TimePoint end = now() + length;
  const auto ended = goOnInSeparateProcess(
      length + strike::kAroundStrike + 2 * (*held)->commandLimit(), [&journal, &id, end] {
        return now() > end && strike::stillLasts(*journal, [&id](const safety::Entry& entry) {
                 return entry.id == id && safety::isOverdue(entry, now());
               });
      });
  if (ended.status().code() == Code::kNotRestored) {
    return rescue(*journal, id, ended.status());
  }
  if (!ended.ok()) return fail(kInject, ended.status(), kExitCannotRun);
  if (ended->has_value()) return **ended;
  return hold(options, **held);
}

}  // namespace faultline::cli
