#include "harness/cli/starter_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/workload_kind.h"
#include "harness/site/kinds/kinds.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::cli {
namespace {

using injector::FaultKind;
using injector::TargetKind;

// When the first fault comes, and how far each is from the one before it. In guests ib_write_bw
// must have met its server first.
constexpr int kFirstMs = 500;
constexpr int kFirstInGuestsMs = 8000;
constexpr int kApartMs = 1500;
constexpr int kShortestProgramS = 5;
constexpr int kAfterLastFaultS = 2;

// What a cluster of guests can have besides faults of RDMA.
bool isInGuestsToo(const FaultKind& kind) { return kind.outside != injector::Outside::kNot; }

std::string thoseInGuestsToo() {
  std::vector<std::string_view> names;
  for (const FaultKind& kind : injector::faultKinds()) {
    if (isInGuestsToo(kind)) names.push_back(kind.name);
  }
  return join(names, " and ");
}

bool isOfRdma(const FaultKind& kind) {
  return injector::isOfQueuePairs(kind.name) || injector::isOfRdmaDevices(kind.name);
}

/// A text that YAML takes for one, whatever is in it.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// What a parameter without a default is set to. The NICs of guests have no rate of which one could
/// take a share.
std::string_view exampleOf(const ParameterSpec& spec, bool in_guests) {
  switch (spec.type) {
    case ParameterType::kRateOrPercent:
      return in_guests ? "1Mbit" : "25%";
    case ParameterType::kPercent:
      return "5%";
    case ParameterType::kRate:
      return "50Mbit";
    case ParameterType::kDuration:
      return "5ms";
    case ParameterType::kCommand:
      return "echo put a command of yours here";
    default:
      return "1";
  }
}

class Writer {
 public:
  Writer(const Starter& starter, std::vector<const FaultKind*> kinds)
      : starter_(starter),
        kind_(*scenario::findWorkloadKind(starter.workload)),
        kinds_(std::move(kinds)) {}

  std::string write() const {
    return fmt::format(
               "# Written by 'faultline init'; change whatever you like, and then\n"
               "#   faultline validate FILE     finds mistakes\n"
               "#   faultline run --dry-run FILE    says what is run, and how long it takes\n"
               "#   faultline run FILE\n"
               "# All keys: 'faultline describe scenario'.\n"
               "version: 1\n"
               "name: {}\n\n",
               quoted(starter_.name)) +
           cluster() + workload() + strategies() + faults() + ending();
  }

 private:
  bool runsPrograms() const { return !kind_.runsRanks; }
  bool any(bool (*holds)(const FaultKind&)) const {
    return std::ranges::any_of(kinds_, [&](const FaultKind* kind) { return holds(*kind); });
  }
  bool inGuests() const { return any(isOfRdma); }
  bool needsShim() const {
    return any([](const FaultKind& kind) { return injector::isOfQueuePairs(kind.name); });
  }
  int firstMs() const { return inGuests() ? kFirstInGuestsMs : kFirstMs; }
  /// For a program of ours: until after the last fault.
  int programSeconds() const {
    const int last_ms = firstMs() + static_cast<int>(kinds_.size()) * kApartMs;
    return std::max(kShortestProgramS, last_ms / 1000 + kAfterLastFaultS);
  }
  bool kills() const {
    return any([](const FaultKind& kind) { return kind.forGood; });
  }
  bool endsProgram() const {
    return kills() || (starter_.program.empty() &&
                       any([](const FaultKind& kind) { return kind.endsConnection; }));
  }

  /// The kind of cluster whose nodes can have all of this.
  const site::Kind& site() const {
    return inGuests() ? site::firstKind(&site::Kind::rdmaDevices) : *site::kinds().front();
  }

  std::string cluster() const {
    return fmt::format(
        "# Nodes: {}.\n# Each has so many rails (NICs){}.\n"
        "cluster: {{kind: {}, nodes: {}, rails: {}{}}}\n\n",
        site().summary, site().shapesRails ? ", each as fast as this" : "", site().name,
        starter_.nodes, starter_.rails, site().shapesRails ? ", rail_rate: 100Mbit" : "");
  }

  std::string workload() const {
    return fmt::format("workload:\n  kind: {}\n", kind_.name) +
           kind_.starter({.nodes = starter_.nodes,
                          .program = starter_.program,
                          .seconds = programSeconds(),
                          .inGuests = inGuests(),
                          .needsShim = needsShim()});
  }

  /// The row that meets the faults.
  std::string_view usual() const { return baseline::usualStrategy(runsPrograms()).name; }
  /// The row that goes on without processes that were killed.
  static std::string_view lesser() {
    return baseline::firstStrategy([](const baseline::StrategySpec& strategy) {
             return strategy.losesRanks && strategy.resilient;
           })
        .name;
  }

  std::string strategies() const {
    if (runsPrograms()) {
      return fmt::format(
          "# Without a fault, and with it. 'env' gives a row variables of its own.\n"
          "strategies: [{}, {}]\n\n",
          baseline::kReferenceRow, usual());
    }
    const bool goes_on = kills() && kind_.mayLoseRanks;
    return fmt::format(
        "# How the job meets the fault; each is run, {0} is what the others are held against.\n"
        "strategies: [{0}, {1}]     # 'faultline list strategies' shows others\n\n",
        baseline::kReferenceRow, goes_on ? lesser() : usual());
  }

  std::string faults() const {
    std::string text = "faults:\n";
    int begin = firstMs();
    for (const FaultKind* kind : kinds_) {
      text += fmt::format("  # {}\n  - kind: {}\n", kind->summary, kind->name);
      for (const ParameterSpec& spec : kind->parameters) {
        if (spec.required())
          text += fmt::format("    {}: {}\n", spec.name, exampleOf(spec, inGuests()));
      }
      text += targetOf(*kind) + fmt::format("    at: {}ms\n", begin);
      text += kind->forGood ? "    until: end\n" : "    duration: 1s\n";
      begin += kApartMs;
    }
    return text + "\n";
  }

  std::string targetOf(const FaultKind& kind) const {
    switch (kind.target) {
      case TargetKind::kNone:
        return "";
      case TargetKind::kProcesses:
        return "    target: {node: 1}\n";
      case TargetKind::kLink:
      case TargetKind::kRdma:
        break;
    }
    return kind.between ? "    target: {node: 0, rail: 0, peer: 1}\n"
                        : "    target: {node: 1, rail: 0}\n";
  }

  std::vector<std::string> gates() const {
    if (!starter_.gates.empty()) return starter_.gates;
    std::vector<std::string> gates;
    if (!runsPrograms()) gates.emplace_back("wrong_elements == 0");
    gates.emplace_back("evidence.ok == true");
    if (runsPrograms()) {
      gates.push_back(fmt::format("{}.exit_code == 0", baseline::kReferenceRow));
      if (endsProgram()) {
        gates.push_back(fmt::format("{}.status == failed", usual()));
      } else if (!inGuests()) {
        gates.push_back(fmt::format("{}.status == ok", usual()));
      }
    } else if (kills()) {
      gates.push_back(kind_.mayLoseRanks ? fmt::format("{}.status == ok", lesser())
                                         : fmt::format("{}.status == failed", usual()));
    } else {
      gates.push_back(fmt::format("{}.status == ok", usual()));
    }
    return gates;
  }

  std::string ending() const {
    std::string text =
        "limits: {deadline: 60s}     # of one run\n"
        "repeat: 1                   # more blocks for numbers: 6 give an interval\n"
        "seed: 7\n\n"
        "# What must hold. These hold on a busy machine too; 'faultline list metrics' shows all.\n"
        "expect:\n";
    for (const std::string& gate : gates()) text += fmt::format("  - {}\n", quoted(gate));
    if (!runsPrograms())
      text +=
          fmt::format("  # - {}.overhead_pct.median <= 30     # needs a quiet machine\n", usual());
    if (inGuests() && !endsProgram() && starter_.gates.empty())
      text +=
          fmt::format("  # - {}.status == ok     # of a program that lives through it\n", usual());
    return text;
  }

  const Starter& starter_;
  const scenario::WorkloadKind& kind_;
  const std::vector<const FaultKind*> kinds_;
};

}  // namespace

std::string_view nameOfPrograms() {
  return scenario::workloadWith(&scenario::WorkloadKind::runsRanks, false);
}

std::string nameFromFile(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  const auto possible = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  std::ranges::replace_if(name, std::not_fn(possible), '-');
  name.erase(0, std::min(name.find_first_not_of("-."), name.size()));
  name.resize(std::min(name.size(), kLongestName));
  return name.empty() ? Starter{}.name : name;
}

std::string reasonAgainst(const Starter& starter, const FaultKind& kind) {
  const scenario::WorkloadKind* const workload = scenario::findWorkloadKind(starter.workload);
  const bool programs = workload != nullptr && !workload->runsRanks;
  if (programs && starter.program.empty() && kind.ofConnections) {
    return fmt::format(
        "cuts TCP connections, and the example program has none: name a program that has "
        "(--program)");
  }
  if (programs || !isOfRdma(kind)) return "";
  return fmt::format(
      "strikes {} of a program that uses RDMA, and ranks of {} have none: name such a program "
      "(--program), or take --workload {}, which runs ib_write_bw",
      injector::isOfQueuePairs(kind.name) ? "queue pairs" : "RDMA devices", starter.workload,
      nameOfPrograms());
}

namespace {

/// Empty, or why the faults cannot be had in one scenario.
std::string reasonAgainstTogether(const std::vector<const FaultKind*>& kinds) {
  const auto rdma =
      std::ranges::find_if(kinds, [](const FaultKind* kind) { return isOfRdma(*kind); });
  if (rdma == kinds.end()) return "";
  for (const FaultKind* kind : kinds) {
    if (isOfRdma(*kind) || isInGuestsToo(*kind)) continue;
    return fmt::format(
        "{} and {} cannot be had together: programs with RDMA run in guests of qemu, and of other "
        "faults these have only {}. Write a scenario of each",
        kind->name, (*rdma)->name, thoseInGuestsToo());
  }
  return "";
}

}  // namespace

Result<std::string> starterScenario(const Starter& starter) {
  const scenario::WorkloadKind* const workload = scenario::findWorkloadKind(starter.workload);
  if (workload == nullptr) {
    return errorf(Code::kInvalidArgument, "there is no workload '{}'{}", starter.workload,
                  suggestion(starter.workload, scenario::workloadKindNames()));
  }
  if (!starter.program.empty() && workload->runsRanks) {
    return errorf(Code::kInvalidArgument, "a program is what a workload of kind {} runs, not {}",
                  nameOfPrograms(), starter.workload);
  }
  std::vector<std::string_view> known;
  for (const FaultKind& kind : injector::faultKinds()) known.push_back(kind.name);
  std::vector<const FaultKind*> kinds;
  for (const std::string& fault : starter.faults) {
    kinds.push_back(injector::findFaultKind(fault));
    if (kinds.back() != nullptr) continue;
    return errorf(Code::kInvalidArgument, "there is no fault '{}'{}", fault,
                  suggestion(fault, known));
  }
  for (const FaultKind* kind : kinds) {
    const std::string reason = reasonAgainst(starter, *kind);
    if (!reason.empty()) return errorf(Code::kInvalidArgument, "{} {}", kind->name, reason);
  }
  const std::string reason = reasonAgainstTogether(kinds);
  if (!reason.empty()) return errorf(Code::kInvalidArgument, "{}", reason);
  std::string text = Writer(starter, std::move(kinds)).write();
  // Whatever was asked for: only what validates is handed out.
  const scenario::ReadResult read = scenario::readScenario(text, "these together");
  if (read.ok()) return text;
  std::string why;
  for (const scenario::Mistake& mistake : read.mistakes) {
    why += (why.empty() ? "" : "; ") + mistake.message;
  }
  return errorf(Code::kInvalidArgument, "this makes no scenario: {}", why);
}

}  // namespace faultline::cli
