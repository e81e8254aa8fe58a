#include "injector/fault_table.h"

#include <algorithm>
#include <array>

#include "injector/rdma_fault_rows.h"
#include "injector/verbs_fault_rows.h"

namespace faultline::injector {
namespace {

constexpr std::array<std::string_view, 2> kHow{"carrier", "admin"};
constexpr std::array<std::string_view, 3> kDirections{"both", "tx", "rx"};

constexpr std::string_view kHowMeaning =
    "carrier: the switch's side goes down, as a pulled cable; the node's NIC loses its carrier and "
    "keeps addresses and routes. admin: the node's NIC is switched off, which also drops its "
    "routes";

constexpr double kMostFlaps = 1'000'000;
constexpr double kShortestPeriodSeconds = 0.002;
constexpr double kLongestPeriodSeconds = 3600;

constexpr std::array kPortDownParameters{
    ParameterSpec{"how", ParameterType::kEnum, "carrier", kHowMeaning, kHow},
};

constexpr ParameterSpec kFlapCount{"count",
                                   ParameterType::kInteger,
                                   "0",
                                   "how many times it goes down; 0: again and again while the "
                                   "fault lasts, one loss per period, the last one before its end",
                                   {},
                                   0,
                                   kMostFlaps};
constexpr ParameterSpec kFlapPeriod{
    "period",
    ParameterType::kDuration,
    "500ms",
    "from one loss to the next; a loss that falls on the fault's end does not happen",
    {},
    kShortestPeriodSeconds,
    kLongestPeriodSeconds};
constexpr ParameterSpec kFlapDuty{
    "duty", ParameterType::kPercent, "50%", "share of the period in which it is down", {}, 1, 99};

constexpr std::array kPortFlapParameters{
    ParameterSpec{"how", ParameterType::kEnum, "carrier", kHowMeaning, kHow},
    kFlapCount,
    kFlapPeriod,
    kFlapDuty,
};
constexpr std::array kPathFlapParameters{kFlapCount, kFlapPeriod, kFlapDuty};

constexpr std::array kThrottleParameters{
    ParameterSpec{"rate",
                  ParameterType::kRateOrPercent,
                  "",
                  "what is left: a rate, or a percentage of the rate the link has now",
                  {},
                  0.1,
                  100},
    ParameterSpec{"direction", ParameterType::kEnum, "both",
                  "tx: what the node sends; rx: what it receives", kDirections},
};

constexpr std::array<std::string_view, 2> kOneWay{"out", "in"};
constexpr std::array<std::string_view, 3> kWays{"both", "out", "in"};

constexpr std::array kOneWayLossParameters{
    ParameterSpec{"direction", ParameterType::kEnum, "out",
                  "out: what the node sends is lost; in: what it should receive", kOneWay},
};

constexpr std::array kLossParameters{
    ParameterSpec{"percent",
                  ParameterType::kPercent,
                  "",
                  "share of the frames that are lost, at random; a frame is what the kernel moves "
                  "at once, up to 64 KiB of a TCP stream",
                  {},
                  1,
                  99},
    ParameterSpec{"direction", ParameterType::kEnum, "both",
                  "out: what the node sends; in: what it should receive", kWays},
};

constexpr std::array kLateDeliveryParameters{
    ParameterSpec{"hold",
                  ParameterType::kDuration,
                  "80ms",
                  "how long everything is held back, from the beginning of the fault; the fault "
                  "itself lasts longer, so that it is seen to come out",
                  {},
                  0.001,
                  kLongestPeriodSeconds},
    ParameterSpec{"direction", ParameterType::kEnum, "both",
                  "out: what the node sends; in: what it should receive", kWays},
};

constexpr std::array<std::string_view, 2> kResetHow{"reset", "half_close"};
constexpr std::array<std::string_view, 2> kConnections{"one", "all"};
constexpr std::array kConnectionResetParameters{
    ParameterSpec{"how", ParameterType::kEnum, "reset",
                  "reset: both ends lose the connection at once; half_close: the node's side ends "
                  "what it sends, without its program's doing, and can still receive",
                  kResetHow},
    ParameterSpec{"connections", ParameterType::kEnum, "one",
                  "one: the connection over this NIC that has moved most bytes so far; all: every "
                  "one over this NIC",
                  kConnections},
};

constexpr std::array kAddressChangeParameters{
    ParameterSpec{"down",
                  ParameterType::kDuration,
                  "100ms",
                  "how long the port is down while its address changes",
                  {},
                  0.001,
                  kLongestPeriodSeconds},
};

constexpr std::array kHostOverloadParameters{
    ParameterSpec{"threads",
                  ParameterType::kInteger,
                  "4",
                  "busy threads for each CPU that the bench may use",
                  {},
                  1,
                  64},
    ParameterSpec{"nice",
                  ParameterType::kInteger,
                  "-10",
                  "their priority: below 0 they go before the job, which needs root",
                  {},
                  -20,
                  19},
};

// --- damage models ---

std::vector<LinkLoss> nothing(const FaultParameters& /*parameters*/, BitsPerSecond /*rate*/,
                              Duration /*longest*/) {
  return {};
}

std::vector<LinkLoss> allOfIt(const FaultParameters& /*parameters*/, BitsPerSecond /*rate*/,
                              Duration /*longest*/) {
  return {LinkLoss{}};
}

std::vector<LinkLoss> oneWay(const FaultParameters& parameters, BitsPerSecond /*rate*/,
                             Duration /*longest*/) {
  const bool out = parameters.get<std::string>("direction") == "out";
  return {LinkLoss{.tx = out ? 1.0 : 0.0, .rx = out ? 0.0 : 1.0}};
}

std::vector<LinkLoss> throttled(const FaultParameters& parameters, BitsPerSecond rate,
                                Duration /*longest*/) {
  const ParameterValue& left = parameters.value("rate");
  double share = 1;
  if (const auto* percent = std::get_if<Percent>(&left)) share = percent->value / kWholeInPercent;
  if (const auto* limit = std::get_if<Rate>(&left); limit != nullptr && rate > 0) {
    share = static_cast<double>(limit->bitsPerSecond) / static_cast<double>(rate);
  }
  const double lost = std::clamp(1 - share, 0.0, 1.0);
  const auto& direction = parameters.get<std::string>("direction");
  return {LinkLoss{.tx = direction == "rx" ? 0 : lost, .rx = direction == "tx" ? 0 : lost}};
}

/// The first loss is when the fault is applied, then there is one per period.
std::vector<LinkLoss> flaps(const FaultParameters& parameters, BitsPerSecond /*rate*/,
                            Duration longest) {
  const auto period = parameters.get<Duration>("period");
  const double share = parameters.get<Percent>("duty").value / kWholeInPercent;
  const auto down = duration_cast<Duration>(period * share);
  const auto count = parameters.get<std::int64_t>("count");
  std::vector<LinkLoss> losses;
  for (std::int64_t i = 0; i * period < longest && (count == 0 || i < count); ++i) {
    const Duration begin = i * period;
    losses.push_back({.begin = begin, .length = std::min(down, longest - begin)});
  }
  return losses;
}

// --- how they are found ---

constexpr std::array kPortSignatures{Signature{{"local_nic"}, {"remote_nic"}}};
// Shorter than a detection, it may pass unnoticed.
constexpr std::array kFlapSignatures{
    Signature{{.cause = "local_nic", .orNone = true}, {.cause = "remote_nic", .orNone = true}}};
constexpr Finding kPathOrRail{.cause = "path", .orNone = true, .orRail = true};
constexpr std::array kPathFlapSignatures{Signature{kPathOrRail, kPathOrRail}};
constexpr std::array kPathCutSignatures{Signature{{"path", "both"}, {"path", "both"}}};
constexpr std::array kBlackholeSignatures{Signature{{"path", "both"}, {"path", "both"}}};
constexpr std::array kOneWaySignatures{
    Signature{{"path", "outgoing"}, {"path", "incoming"}, "direction", "out"},
    Signature{{"path", "incoming"}, {"path", "outgoing"}, "direction", "in"}};
constexpr std::array kLateDeliverySignatures{
    Signature{{"path", "outgoing"}, {"path", "incoming"}, "direction", "out"},
    Signature{{"path", "incoming"}, {"path", "outgoing"}, "direction", "in"},
    Signature{{"path", "both"}, {"path", "both"}}};
// Whoever sends over the link says so; it lives.
constexpr std::array kThrottleSignatures{Signature{{"degraded"}, {"degraded"}}};
constexpr std::array kConnectionSignatures{Signature{{"rail"}, {"rail"}}};
// Of a link that loses much, a job may think what it likes; of one that is killed nothing is left.
constexpr std::array kAnySignatures{Signature{{kAnyCause}, {kAnyCause}}};

constexpr std::array kKinds{
    FaultKind{
        .name = "port_down",
        .summary = "The port of one NIC goes down and stays down until the fault ends.",
        .sees =
            "the NIC's own node sees a port event at once; its peers, behind a switch, see nothing",
        .evidence = "the other end of the cable has lost its carrier and its counters stand still",
        .undo = "the port is switched on again; addresses and routes that were lost are put back",
        .parameters = kPortDownParameters,
        .cutsLink = true,
        .signatures = kPortSignatures,
        .ofWholeRails = true,
        .outside = Outside::kCable,
        .portEvents = PortEvents::kOnce,
        .damage = allOfIt},
    FaultKind{.name = "port_flap",
              .summary = "The port of one NIC goes down and comes back, again and again.",
              .sees = "port events in a train; every return is soon followed by the next loss",
              .evidence = "in each loss the other end of the cable has lost its carrier",
              .undo = "the port is switched on; addresses and routes that were lost are put back",
              .parameters = kPortFlapParameters,
              .signatures = kFlapSignatures,
              .ofWholeRails = true,
              .portEvents = PortEvents::kAgain,
              .damage = flaps},
    FaultKind{
        .name = "throttle",
        .summary = "One link becomes slow but stays up (a gray failure).",
        .sees = "nothing but time and counters",
        .evidence =
            "bytes per second that leave the queue while there is a backlog; without load of the "
            "job, a probe stream of the injector's own",
        .undo = "the former rate is set again",
        .parameters = kThrottleParameters,
        .signatures = kThrottleSignatures,
        .ofWholeRails = true,
        .slows = true,
        .damage = throttled},
    FaultKind{
        .name = "blackhole",
        .summary = "One link swallows everything in both directions while its carrier stays up.",
        .sees = "silence: the NIC stays up, nothing is answered",
        .evidence =
            "the NIC's transmit counter rises while what the switch forwards from and to that node "
            "stands still; without load of the job, probe frames of the injector's own",
        .undo = "the switch port forwards again",
        .cutsLink = true,
        .signatures = kBlackholeSignatures,
        .outside = Outside::kSwitch,
        .damage = allOfIt},
    FaultKind{.name = "path_flap",
              .summary = "One link swallows everything and carries again, again and again; its "
                         "carrier stays up.",
              .sees = "silence that ends; what was lost waits for the transport to send it again",
              .evidence = "in each outage probe frames of the injector's own reach the switch from "
                          "either side, and "
                          "none crosses the link",
              .undo = "the switch port forwards again",
              .parameters = kPathFlapParameters,
              .signatures = kPathFlapSignatures,
              .damage = flaps},
    FaultKind{
        .name = "late_delivery",
        .summary =
            "One link holds back what is sent over it, its carrier up, and delivers it late.",
        .sees = "silence; then old bytes that everybody had given up",
        .evidence =
            "while it holds, probe frames of the injector's own do not cross it; then all that was "
            "held comes out, the probe frames too",
        .undo =
            "the filter on the switch's port is removed, and what is held is sent; both die with "
            "the switch's namespace and the program",
        .parameters = kLateDeliveryParameters,
        .signatures = kLateDeliverySignatures,
        .alone = true},
    FaultKind{
        .name = "one_way_loss",
        .summary = "One link loses everything in one direction while its carrier stays up.",
        .sees = "silence, though the other direction still works",
        .evidence = "probe frames of the injector's own cross the link in one direction only",
        .undo = "the filter on the switch's port is removed; it dies with the switch's namespace",
        .parameters = kOneWayLossParameters,
        .cutsLink = true,
        .signatures = kOneWaySignatures,
        .alone = true,
        .damage = oneWay},
    FaultKind{
        .name = "path_cut",
        .summary =
            "Two nodes no longer reach each other over one rail; both reach all others over it.",
        .sees = "silence between the two, though both links work: only a third node can tell",
        .evidence =
            "probe frames of either NIC leave the switch by the ports of others, and none by that "
            "of the peer; both NICs keep their carrier",
        .undo = "the switch's two ports are no longer isolated from each other; that dies with its "
                "namespace",
        .signatures = kPathCutSignatures,
        .alone = true,
        .between = true},
    FaultKind{
        .name = "loss",
        .summary = "One link loses a share of its frames at random.",
        .sees = "retransmissions, control messages that must be repeated",
        .evidence = "the share of probe frames of the injector's own that do not cross the link",
        .undo = "the filter on the switch's port is removed; it dies with the switch's namespace",
        .parameters = kLossParameters,
        .signatures = kAnySignatures,
        .alone = true},
    FaultKind{
        .name = "connection_reset",
        .summary = "TCP connections over one NIC die while its port lives.",
        .sees = "errors or the end of the stream on some connections, and nothing else",
        .evidence =
            "the segment that ends the connection passes the switch's port, and the kernel no "
            "longer has the connection as established",
        .undo = "nothing to undo: programs may connect again",
        .parameters = kConnectionResetParameters,
        .signatures = kConnectionSignatures,
        .ofConnections = true,
        .damage = nothing},
    FaultKind{
        .name = "address_change",
        .summary =
            "The port of one NIC goes down, and comes back with another address; when the fault "
            "ends, the same way back.",
        .sees = "a port event; nobody answers at the old address any more",
        .evidence =
            "the switch's end has lost its carrier, and then asks by ARP: the NIC answers for "
            "the new address and not for the old one",
        .undo = "the former address is set again; routes that were lost are put back",
        .parameters = kAddressChangeParameters,
        .signatures = kPortSignatures,
        .portEvents = PortEvents::kBriefly},
    FaultKind{
        .name = "process_stop",
        .summary = "All processes of a node are stopped (SIGSTOP), and go on when the fault ends.",
        .sees = "a peer that neither answers nor ends, while its kernel still acknowledges",
        .evidence = "every process is in the state stopped and uses no CPU time",
        .undo = "SIGCONT",
        .target = TargetKind::kProcesses},
    FaultKind{.name = "process_kill",
              .summary = "All processes of a node are killed (SIGKILL).",
              .sees = "connections that end, a peer that is gone for good",
              .evidence = "every process has ended, and the node has none left",
              .undo = "nothing can be undone",
              .target = TargetKind::kProcesses,
              .forGood = true,
              .signatures = kAnySignatures,
              .endsProcesses = true},
    kVerbsFaults[0],
    kVerbsFaults[1],
    kVerbsFaults[2],
    kVerbsFaults[3],
    kVerbsFaults[4],
    kVerbsFaults[5],
    kRdmaFaults[0],
    kRdmaFaults[1],
    kRdmaFaults[2],
    kRdmaFaults[3],
    FaultKind{
        .name = "host_overload",
        .summary = "Busy threads take the CPUs of this machine away from everything else.",
        .sees = "nothing but time: answers come late, from everywhere",
        .evidence =
            "a probe thread of normal priority that always wants to run waits most of the time",
        .undo = "the threads go to sleep; they die with the program",
        .parameters = kHostOverloadParameters,
        .target = TargetKind::kNone},
    FaultKind{.name = "none",
              .summary = "Does nothing. For testing the bench: a run with it must be INVALID.",
              .sees = "nothing",
              .evidence = "there is none, ever",
              .undo = "nothing to undo",
              .target = TargetKind::kNone,
              .damage = nothing},
};

static_assert(std::ranges::all_of(kKinds, [](const FaultKind& kind) {
  return !kind.slows || kind.damage != nullptr;
}));

std::string describe(const Finding& finding) {
  if (finding.cause.empty()) return "no rail is given up";
  if (finding.cause == kAnyCause) return "anything";
  std::string text(finding.cause);
  if (!finding.deadDirection.empty()) text += fmt::format(" ({})", finding.deadDirection);
  if (finding.orRail) text += ", or rail";
  return finding.orNone ? text + ", or nothing" : text;
}

std::string describeSignatures(const FaultKind& kind) {
  std::string rows;
  for (const Signature& signature : kind.signatures) {
    std::string text = fmt::format("at the node that is struck: {}; at the others: {}",
                                   describe(signature.own), describe(signature.peer));
    if (!signature.parameter.empty()) {
      text = fmt::format("{}: {}: {}", signature.parameter, signature.value, text);
    }
    rows += describeRow("is found as", text);
  }
  return rows.empty() ? describeRow("is found as", describe(Finding{})) : rows;
}

}  // namespace

std::span<const FaultKind> faultKinds() { return kKinds; }

const FaultKind* findFaultKind(std::string_view name) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const FaultKind& kind) { return kind.name == name; });
  return found == kKinds.end() ? nullptr : &*found;
}

bool isOfQueuePairs(std::string_view name) {
  return std::ranges::any_of(kVerbsFaults, [&](const FaultKind& row) { return row.name == name; });
}

bool isOfRdmaDevices(std::string_view name) {
  return std::ranges::any_of(kRdmaFaults, [&](const FaultKind& row) { return row.name == name; });
}

Signature signatureOf(const FaultKind& kind, const std::map<std::string, std::string>& parameters) {
  for (const Signature& signature : kind.signatures) {
    const auto given = parameters.find(std::string(signature.parameter));
    const bool is = given != parameters.end() && given->second == signature.value;
    if (signature.parameter.empty() || is) return signature;
  }
  return {};
}

std::string shortName(const FaultKind& kind, const std::map<std::string, std::string>& parameters) {
  std::string text(kind.name);
  for (const ParameterSpec& spec : kind.parameters) {
    const auto given = parameters.find(std::string(spec.name));
    const bool first = spec.name == kind.parameters.front().name;
    if (given == parameters.end() || (!first && given->second == spec.defaultText)) continue;
    text += " " + given->second;
  }
  return text;
}

const ParameterSpec* findParameter(const FaultKind& kind, std::string_view name) {
  for (const ParameterSpec& spec : kind.parameters) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

Result<FaultParameters> FaultParameters::parse(const FaultKind& kind,
                                               const std::map<std::string, std::string>& texts) {
  ASSIGN_OR_RETURN(Parameters values, Parameters::parse(kind.name, kind.parameters, texts));
  return FaultParameters(std::move(values));
}

std::string summaryOf(const FaultKind& kind) {
  std::string text(kind.summary);
  if (!kind.unproven.empty()) text += fmt::format(" Unproven: {}.", kind.unproven);
  return text;
}

std::string describeFault(const FaultKind& kind) {
  const bool rdma = kind.target == TargetKind::kRdma;
  return fmt::format("{}\n\n", kind.name) + describeRow("does", kind.summary) +
         describeRow("job sees", kind.sees) + describeRow("evidence", kind.evidence) +
         describeRow("undo", kind.undo) +
         (kind.unproven.empty() ? "" : describeRow("unproven", kind.unproven)) +
         (rdma ? "" : describeSignatures(kind)) + "\nparameters\n" +
         describeParameters(kind.parameters) +
         (rdma ? "\nacts on an RDMA device: of this machine by 'faultline inject', of a guest in "
                 "scenarios with\n'cluster: {kind: rdma_vm}': docs/rdma_faults.md\n"
               : "") +
         "\nevery fault also has target, at | during, duration | until: end, and times with "
         "every\n";
}

}  // namespace faultline::injector
