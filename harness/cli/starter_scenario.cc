#include "harness/cli/starter_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/vocabulary.h"
#include "injector/fault_table.h"

namespace faultline::cli {
namespace {

using injector::FaultKind;
using injector::TargetKind;

constexpr std::string_view kCommand = "command";
constexpr std::string_view kExampleProgram = "sleep 5; echo done";

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
    default:
      return "1";
  }
}

class Writer {
 public:
  Writer(const Starter& starter, std::vector<const FaultKind*> kinds)
      : starter_(starter), kinds_(std::move(kinds)) {}

  std::string write() const {
    return fmt::format(
               "# Written by 'faultline init'; change whatever you like, and then\n"
               "#   faultline validate FILE     finds mistakes\n"
               "#   faultline run --dry-run FILE    says what is run, and how long it takes\n"
               "#   faultline run FILE\n"
               "# All keys: 'faultline describe scenario'.\n"
               "version: 1\n"
               "name: {}\n\n",
               starter_.name) +
           cluster() + workload() + strategies() + faults() + ending();
  }

 private:
  bool isForeign() const { return starter_.workload == kCommand; }
  bool any(bool (*holds)(const FaultKind&)) const {
    return std::ranges::any_of(kinds_, [&](const FaultKind* kind) { return holds(*kind); });
  }
  bool inGuests() const {
    return any([](const FaultKind& kind) { return kind.target == TargetKind::kRdma; });
  }
  bool kills() const {
    return any([](const FaultKind& kind) { return kind.forGood; });
  }

  std::string cluster() const {
    if (inGuests()) {
      return fmt::format(
          "# Nodes are guests (qemu) on this machine, with so many RDMA devices in software each.\n"
          "cluster: {{kind: rdma_vm, nodes: {}, rails: {}}}\n\n",
          starter_.nodes, starter_.rails);
    }
    return fmt::format(
        "# Nodes are network namespaces of this machine; each has so many NICs (rails), each as "
        "fast "
        "as this.\n"
        "cluster: {{kind: netns, nodes: {}, rails: {}, rail_rate: 100Mbit}}\n\n",
        starter_.nodes, starter_.rails);
  }

  std::string workload() const {
    std::string text = fmt::format("workload:\n  kind: {}\n", starter_.workload);
    if (starter_.workload == "collective") {
      return text +
             "  iterations: 60            # calls of each operation and size\n"
             "  collective: {operations: [all_reduce], sizes: [256KiB, 1MiB]}\n\n";
    }
    if (starter_.workload == "inference") {
      return text +
             fmt::format(
                 "  model: llama3.1-8b        # 'faultline list models' shows others\n"
                 "  device: a100\n"
                 "  parallel: {{tensor: {}}}\n"
                 "  scale: 5000               # all times and bytes are so many times smaller\n"
                 "  inference: {{qps: [10], requests: 40, prompt: {{mean: 500}}, output: "
                 "{{mean: 16}}}}\n\n",
                 starter_.nodes);
    }
    if (isForeign()) {
      const std::string program =
          starter_.program.empty() ? std::string(kExampleProgram) : starter_.program;
      return text +
             fmt::format(
                 "  command:\n"
                 "    # Runs on every node. {{rank}}, {{node}}, {{ranks}}, {{output}} and "
                 "others are replaced:\n"
                 "    # docs/command.md has the list.\n"
                 "    run: [sh, -c, {}]\n"
                 "    time_limit: 60s\n"
                 "    # A number that it prints can be judged, as <strategy>.metrics.speed:\n"
                 "    # metrics: {{speed: {{regex: 'speed: ([0-9.]+)', unit: GB/s}}}}\n\n",
                 quoted(program));
    }
    return text +
           "  iterations: 40\n"
           "  compute: 20ms             # of each iteration\n"
           "  gradient: {size: 1MiB, buckets: 4, dtype: f32, data: integers}\n\n";
  }

  std::string strategies() const {
    if (isForeign()) {
      return "# Without a fault, and with it. 'env' gives a row variables of its own.\n"
             "strategies: [fault_free, unprotected]\n\n";
    }
    const bool goes_on = kills() && starter_.workload == "training";
    return fmt::format(
        "# How the job meets the fault; each is run, fault_free is what the others are held "
        "against.\n"
        "strategies: [fault_free, {}]     # 'faultline list strategies' shows others\n\n",
        goes_on ? "shrink" : "hot_repair");
  }

  std::string faults() const {
    std::string text = "faults:\n";
    constexpr int kApartMs = 1500;
    int begin = 500;
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
    if (!isForeign()) gates.emplace_back("wrong_elements == 0");
    gates.emplace_back("evidence.ok == true");
    if (isForeign()) {
      gates.emplace_back("fault_free.exit_code == 0");
      gates.emplace_back(kills() ? "unprotected.status == failed" : "unprotected.status == ok");
    } else if (kills()) {
      gates.emplace_back(starter_.workload == "training" ? "shrink.status == ok"
                                                         : "hot_repair.status == failed");
    } else {
      gates.emplace_back("hot_repair.status == ok");
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
    if (!isForeign())
      text += "  # - hot_repair.overhead_pct.median <= 30     # needs a quiet machine\n";
    return text;
  }

  const Starter& starter_;
  const std::vector<const FaultKind*> kinds_;
};

}  // namespace

Result<std::string> starterScenario(const Starter& starter) {
  std::vector<std::string_view> workloads;
  for (const scenario::Word& word : scenario::workloadKinds()) workloads.push_back(word.name);
  if (std::ranges::count(workloads, starter.workload) == 0) {
    return errorf(Code::kInvalidArgument, "there is no workload '{}'{}", starter.workload,
                  suggestion(starter.workload, workloads));
  }
  if (!starter.program.empty() && starter.workload != kCommand) {
    return errorf(Code::kInvalidArgument,
                  "a program is what a workload of kind command runs, not {}", starter.workload);
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
