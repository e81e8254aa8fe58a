#include "injector/fault_table.h"

#include <algorithm>
#include <array>

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

constexpr std::array kPortFlapParameters{
    ParameterSpec{"how", ParameterType::kEnum, "carrier", kHowMeaning, kHow},
    ParameterSpec{"count",
                  ParameterType::kInteger,
                  "0",
                  "how many times the port goes down; 0: again and again while the fault lasts",
                  {},
                  0,
                  kMostFlaps},
    ParameterSpec{"period",
                  ParameterType::kDuration,
                  "500ms",
                  "from one loss of the port to the next",
                  {},
                  kShortestPeriodSeconds,
                  kLongestPeriodSeconds},
    ParameterSpec{"duty",
                  ParameterType::kPercent,
                  "50%",
                  "share of the period in which the port is down",
                  {},
                  1,
                  99},
};

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

constexpr std::array kKinds{
    FaultKind{
        "port_down", "The port of one NIC goes down and stays down until the fault ends.",
        "the NIC's own node sees a port event at once; its peers, behind a switch, see nothing",
        "the other end of the cable has lost its carrier and its counters stand still",
        "the port is switched on again; addresses and routes that were lost are put back",
        kPortDownParameters, true},
    FaultKind{"port_flap", "The port of one NIC goes down and comes back, again and again.",
              "port events in a train; every return is soon followed by the next loss",
              "in each loss the other end of the cable has lost its carrier",
              "the port is switched on; addresses and routes that were lost are put back",
              kPortFlapParameters},
    FaultKind{"throttle", "One link becomes slow but stays up (a gray failure).",
              "nothing but time and counters",
              "bytes per second that leave the queue while there is a backlog; without load of the "
              "job, a probe stream of the injector's own",
              "the former rate is set again", kThrottleParameters},
    FaultKind{
        "blackhole",
        "One link swallows everything in both directions while its carrier stays up.",
        "silence: the NIC stays up, nothing is answered",
        "the NIC's transmit counter rises while what the switch forwards from and to that node "
        "stands still; without load of the job, probe frames of the injector's own",
        "the switch port forwards again",
        {},
        true},
    FaultKind{"none",
              "Does nothing. For testing the bench: a run with it must be INVALID.",
              "nothing",
              "there is none, ever",
              "nothing to undo",
              {},
              false,
              false},
};

}  // namespace

std::span<const FaultKind> faultKinds() { return kKinds; }

const FaultKind* findFaultKind(std::string_view name) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const FaultKind& kind) { return kind.name == name; });
  return found == kKinds.end() ? nullptr : &*found;
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

std::string describeFault(const FaultKind& kind) {
  return fmt::format("{}\n\n", kind.name) + describeRow("does", kind.summary) +
         describeRow("job sees", kind.sees) + describeRow("evidence", kind.evidence) +
         describeRow("undo", kind.undo) + "\nparameters\n" + describeParameters(kind.parameters) +
         "\nevery fault also has target, at | during, and duration | until: end\n";
}

}  // namespace faultline::injector
