#include "harness/cli/inject_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/printable.h"
#include "base/units.h"
#include "harness/cli/carry_out.h"
#include "harness/cli/cli.h"
#include "harness/cli/host_injection.h"
#include "harness/cli/inject_options.h"
#include "harness/cli/inject_target.h"
#include "harness/cli/output.h"
#include "harness/cli/queue_pair_list.h"
#include "harness/cli/separate_process.h"
#include "harness/control/interrupt.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"
#include "injector/safety/journal.h"
#include "injector/safety/policy.h"

namespace faultline::cli {
namespace {

constexpr std::string_view kVerb = "inject";
constexpr const char* kAtOnce = "1s";

Json toJson(const Injection& injection, const Outcome& outcome) {
  Json parameters = Json::object();
  for (const auto& [name, value] : injection.parameters.all()) {
    parameters[name] = formatParameter(value);
  }
  Json evidence;  // null: nobody waited for it
  if (!outcome.interrupted || outcome.evidence.ok) {
    evidence = {{"kind", outcome.evidence.kind},
                {"observed", outcome.evidence.observed},
                {"ok", outcome.evidence.ok},
                {"numbers", outcome.evidence.numbers}};
  }
  return {{"kind", injection.kind->name},
          {"target", injection.target},
          {"parameters", std::move(parameters)},
          {"mechanism", injection.fault->mechanism()},
          {"unproven", injection.kind->unproven.empty() ? Json() : Json(injection.kind->unproven)},
          {"lasted_ms", toMilliseconds(outcome.lasted)},
          {"interrupted", outcome.interrupted},
          {"target_ended", outcome.ended.has_value()},
          {"reverted", outcome.reverted.ok()},
          {"evidence", std::move(evidence)}};
}

void printText(const std::string& kind, const Outcome& outcome) {
  const std::string what = fmt::format("{} for {:.0f} ms", kind, toMilliseconds(outcome.lasted));
  if (outcome.interrupted) {
    std::cout << what << ": interrupted, and taken back\n";
    if (!outcome.evidence.ok) return;
  } else {
    std::cout << fmt::format("{}{}: {}\n", what, outcome.ended ? ", when what it struck ended" : "",
                             outcome.evidence.ok ? "it happened" : "INVALID, it left no evidence");
  }
  std::cout << fmt::format("evidence ({}): {}\n", outcome.evidence.kind,
                           printable(outcome.evidence.observed));
}

int inject(const InjectOptions& options) {
  // Of what stays there is nothing to wait for but the evidence.
  const injector::FaultKind* const named = injector::findFaultKind(options.kind);
  const bool lasts = named != nullptr && named->lasts;
  const std::string length = options.duration.empty() && lasts ? kAtOnce : options.duration;
  if (options.kind.empty()) {
    return fail(kVerb,
                errorf(Code::kInvalidArgument,
                       "which fault? Possible are {}; or --list with --target pid=N", injectable()),
                kExitUsage);
  }
  if (const Status status = canInjectByHand(options.kind); !status.ok()) {
    return fail(kVerb, status, kExitUsage);
  }
  if (options.target.empty() || length.empty()) {
    const bool both = options.target.empty() && length.empty();
    return fail(kVerb,
                errorf(Code::kInvalidArgument, "{} needs {}{}{}, like --target {} --for 2s",
                       options.kind, options.target.empty() ? "--target" : "", both ? " and " : "",
                       length.empty() ? "--for" : "",
                       named->makeOnHost != nullptr ? "eth1" : "pid=1234,dev=mlx5_0"),
                kExitUsage);
  }
  const auto duration = parseDuration(length);
  if (!duration.ok()) return fail(kVerb, duration.status().withContext("--for"), kExitUsage);
  if (*duration <= Duration(0)) {
    return fail(kVerb, errorf(Code::kInvalidArgument, "--for: it must last"), kExitUsage);
  }
  if (named->makeOnHost != nullptr) return injectOnHost(options, *named, *duration);
  if (options.dryRun) {
    return fail(kVerb,
                errorf(Code::kInvalidArgument, "--dry-run is for faults of a host's interfaces"),
                kExitUsage);
  }
  auto injection = makeInjection(options.kind, options.target, options.parameters);
  if (!injection.ok()) return fail(kVerb, injection.status(), kExitUsage);
  injector::Fault& fault = *injection->fault;
  if (injection->kind->target == injector::TargetKind::kRdma) {
    // Nobody else would take it back: what is in a program ends with its connection.
    const auto ended = goOnInSeparateProcess();
    if (!ended.ok()) return fail(kVerb, ended.status(), exitOfFault(ended.status()));
    if (ended->has_value()) return **ended;
  }
  auto interrupt = run::Interrupt::watch();
  if (!interrupt.ok()) return fail(kVerb, interrupt.status(), kExitCannotRun);
  const Outcome outcome = carryOut(fault, *duration, *interrupt, [&] {
    const std::string_view unproven = injection->kind->unproven;
    std::cerr << fmt::format("inject: {} for {} ({}){}{}\n", options.kind,
                             formatDuration(*duration), fault.mechanism(),
                             unproven.empty() ? "" : "; unproven: ", unproven);
  });
  if (!outcome.reverted.ok()) {
    return fail(kVerb, outcome.reverted.withContext("take it back"), kExitNotRestored);
  }
  if (!outcome.status.ok()) return fail(kVerb, outcome.status, exitOfFault(outcome.status));
  if (options.json) {
    print(toJson(*injection, outcome));
  } else {
    printText(options.kind, outcome);
  }
  if (outcome.interrupted) return kExitInterrupted;
  return outcome.evidence.ok ? kExitOk : kExitInvalid;
}

/// What a source does not tell is no fact.
template <typename T>
Json orNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <typename T>
std::string orDash(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "-";
}

int list(const InjectOptions& options) {
  if (!options.kind.empty() || !options.duration.empty() || !options.parameters.empty()) {
    return fail(kVerb, errorf(Code::kInvalidArgument, "--list takes only --target pid=N"),
                kExitUsage);
  }
  const auto target = parseTarget(options.target);
  if (!target.ok()) return fail(kVerb, target.status(), kExitUsage);
  const auto pid = processOf(*target);
  if (!pid.ok()) return fail(kVerb, pid.status(), kExitUsage);
  const auto found = listQueuePairs(*pid);
  if (!found.ok()) return fail(kVerb, found.status(), exitOfFault(found.status()));
  if (options.json) {
    Json rows = Json::array();
    for (const QueuePairRow& row : found->queuePairs) {
      rows.push_back({{"device", row.device},
                      {"qpn", row.number},
                      {"type", row.type},
                      {"state", row.state},
                      {"peer_qpn", orNull(row.peerNumber)},
                      {"dlid", orNull(row.peerLid)},
                      {"dgid", orNull(row.peerGid)},
                      {"shim", row.shim}});
    }
    print({{"pid", *pid},
           {"source", found->source},
           {"no_faults", found->noFaults.empty() ? Json() : Json(found->noFaults)},
           {"queue_pairs", std::move(rows)}});
    return kExitOk;
  }
  std::cout << fmt::format(
      "queue pairs of process {}, as told by {}; '-' is not told; those with the shim can have "
      "faults\n",
      *pid, found->source);
  constexpr std::string_view kRow = "{:<12} {:>8}  {:<8} {:<6} {:<4} {:>9} {:>6}  {}\n";
  std::cout << fmt::format(fmt::runtime(kRow), "device", "qpn", "type", "state", "shim", "peer_qpn",
                           "dlid", "dgid");
  for (const QueuePairRow& row : found->queuePairs) {
    const std::string gid = orDash(row.peerGid);
    std::cout << fmt::format(fmt::runtime(kRow), row.device, row.number, row.type, row.state,
                             row.shim ? "yes" : "no", orDash(row.peerNumber), orDash(row.peerLid),
                             gid.empty() ? "none" : gid);
  }
  if (!found->noFaults.empty()) {
    std::cout << fmt::format("no faults of queue pairs: {}\n", found->noFaults);
  }
  return kExitOk;
}

/// A fault of queue pairs that counts what it strikes: for the example.
std::string_view kindWithBudget() {
  const auto kinds = injector::faultKinds();
  return std::ranges::find_if(kinds,
                              [](const injector::FaultKind& kind) {
                                return kind.ofQueuePairs &&
                                       injector::findParameter(kind, "budget") != nullptr;
                              })
      ->name;
}

}  // namespace

CLI::App* addInjectCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "inject", "Put one fault into something that runs, for a while, and prove it");
  const auto options = std::make_shared<InjectOptions>();
  options->policy = safety::kPolicyPath;
  options->journal = safety::kJournalPath;
  command
      ->add_option(
          "KIND", options->kind,
          "A fault of queue pairs, RDMA devices or this host's interfaces, see list faults and "
          "describe KIND; others are for scenarios")
      ->type_name("");
  command
      ->add_option("--target", options->target,
                   "What it strikes, like pid=1234,dev=mlx5_0,qpn=17; of an interface its name, or "
                   "pci=0000:17:00.0, or mac=02:00:00:00:00:01")
      ->type_name("KEY=VALUE,...");
  command
      ->add_option("--for", options->duration,
                   "How long it lasts, like 2s; what stays by itself may do without (1s)")
      ->type_name("DURATION");
  command
      ->add_option("--param", options->parameters,
                   "A parameter of the fault, like budget=1; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--dry-run", options->dryRun,
                    "Print what would be done and how it is undone, as commands, and whether it "
                    "would be allowed (interfaces only)");
  command
      ->add_option("--policy", options->policy,
                   "The file, writable by root alone, that allows strikes on interfaces")
      ->type_name("FILE")
      ->default_str(std::string(safety::kPolicyPath));
  command
      ->add_option("--journal", options->journal, "The folder where it stands what is to be undone")
      ->type_name("DIR")
      ->default_str(std::string(safety::kJournalPath));
  command
      ->add_option("--keep", options->keep,
                   "An address that this machine must go on reaching, like that of its controller; "
                   "may be repeated")
      ->type_name("ADDRESS")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--list", options->list,
                    "List the queue pairs of the target's process instead");
  addJsonFlag(*command, options->json);
  setFooter(
      *command, "",
      {fmt::format("faultline inject {} --target pid=1234,dev=mlx5_0 --for 2s --param budget=1",
                   kindWithBudget()),
       fmt::format("faultline inject {} --target eth1 --for 2s --dry-run", injector::kUsualFault),
       "faultline inject --list --target pid=1234"},
      "0 the fault happened and was taken back, 2 usage mistake, 3 this machine cannot do it, "
      "4 it could not be taken back, 5 it left no evidence, 130 interrupted, and taken back");
  command->callback(
      [options, &exit_code] { exit_code = options->list ? list(*options) : inject(*options); });
  return command;
}

}  // namespace faultline::cli
