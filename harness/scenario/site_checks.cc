#include "harness/scenario/site_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/fault_kinds.h"
#include "harness/scenario/workload_kind.h"
#include "harness/site/kinds/kinds.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

class SiteChecker {
 public:
  SiteChecker(const Scenario& scenario, const Node& root, Findings& findings)
      : scenario_(scenario), kind_(*scenario.cluster.kind), root_(root), findings_(findings) {}

  void check() {
    checkSettings();
    checkSize("nodes", scenario_.cluster.nodes, kind_.most.nodes);
    checkSize("ranks_per_node", scenario_.cluster.ranksPerNode, kind_.most.ranksPerNode);
    checkSize("rails", scenario_.cluster.rails, kind_.most.rails);
    checkWorkload();
    for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
      checkTarget(scenario_.faults[i], fmt::format("faults.{}", i));
    }
    for (std::size_t i = 0; i < scenario_.sequences.size(); ++i) {
      const std::vector<Fault>& faults = scenario_.sequences[i].faults;
      for (std::size_t j = 0; j < faults.size(); ++j) {
        checkTarget(faults[j], fmt::format("sequences.{}.faults.{}", i, j));
      }
    }
    forEachFaultKind(scenario_,
                     [this](const std::string& kind, const injector::FaultParameters& parameters,
                            const std::string& path) { checkFault(kind, parameters, path); });
  }

 private:
  void fail(std::string_view path, std::string message) {
    findings_.add(locate(root_, path), std::move(message));
  }

  void checkSettings() {
    const Node* const cluster = root_.find("cluster");
    const auto refuse = [&](std::string_view key, std::string_view why) {
      const Node* const set = cluster == nullptr ? nullptr : cluster->find(key);
      if (set == nullptr) return;
      findings_.add(set->where, fmt::format("{}: {} of a cluster of kind {} {}; remove it", key,
                                            key == kRailRate ? "rails" : "nodes", kind_.name, why));
    };
    if (!kind_.shapesRails && !kind_.findsRails) refuse(kRailRate, "are not shaped");
    if (kind_.ownKernels) refuse("congestion_control", "have their own kernel's");
    if (kind_.nodes != nullptr) refuse("nodes", "are those that it names");
    for (const site::Kind* const other : site::kinds()) {
      for (const site::Setting& setting : other->settings) {
        const Node* const set = cluster == nullptr ? nullptr : cluster->find(setting.spec.name);
        if (set == nullptr || hasSetting(setting.spec.name)) continue;
        findings_.add(set->where, fmt::format("{}: is of a cluster of kind {}, and this one is of "
                                              "kind {}; remove it",
                                              setting.spec.name, other->name, kind_.name));
      }
    }
  }

  bool hasSetting(std::string_view name) const {
    return std::ranges::any_of(
        kind_.settings, [&](const site::Setting& setting) { return setting.spec.name == name; });
  }

  void checkSize(std::string_view key, int asked, int most) {
    const std::string path = fmt::format("cluster.{}", key);
    if (!findings_.usable({path}) || asked <= most) return;
    fail(path, fmt::format("{}: a cluster of kind {} has {} at most, not {}", key, kind_.name, most,
                           asked));
  }

  void checkWorkload() {
    if (!kind_.runsRanks && scenario_.workload.kind->runsRanks) {
      fail("workload.kind",
           fmt::format("kind: a cluster of kind {} runs programs that are not ours: write '{}', or "
                       "'{}'",
                       kind_.name, workloadWith(&WorkloadKind::runsRanks, false),
                       clusterOf(site::firstKind(&site::Kind::runsRanks))));
    }
    for (std::size_t i = 0; i < scenario_.strategies.size() && !namesSharedFolder(); ++i) {
      const auto* const spec = baseline::findStrategy(scenario_.strategies[i].kind());
      if (spec == nullptr || !spec->restarts) continue;
      fail(fmt::format("strategies.{}", i),
           fmt::format("{}: its ranks keep checkpoints in a folder that all nodes share: name one "
                       "in the cluster section, '{}: /a/path/that/all/see'",
                       spec->name, kind_.folderSetting));
    }
    checkFilesOfPrograms();
    for (std::size_t i = 0; i < scenario_.strategies.size() && !kind_.mayHaveGpus; ++i) {
      const auto* const spec = baseline::findStrategy(scenario_.strategies[i].kind());
      if (spec == nullptr || !spec->setsUpNccl) continue;
      fail(fmt::format("strategies.{}", i),
           fmt::format("{}: NCCL needs GPUs, and nodes of a cluster of kind {} have none",
                       spec->name, kind_.name));
    }
  }

  bool namesSharedFolder() const {
    if (kind_.sharesFolder) return true;
    const auto found = scenario_.cluster.settings.find(kind_.folderSetting);
    return found != scenario_.cluster.settings.end() && !found->second.front().empty();
  }

  /// Elsewhere a program has a folder of its own, out of which its files are brought.
  void checkFilesOfPrograms() {
    if (kind_.sharesFolder) return;
    const auto check = [&](std::string_view key, const std::string& file, const std::string& path) {
      const std::filesystem::path given(file);
      const bool below =
          given.is_relative() && !given.lexically_normal().string().starts_with("..");
      if (below || !findings_.usable({path})) return;
      fail(path, fmt::format("{}: '{}' is not below the folder of the process, and nodes of a "
                             "cluster of kind {} share no other: write a path below '{{output}}', "
                             "without it",
                             key, file, kind_.name));
    };
    const command::Command& command = scenario_.workload.command;
    check("progress", command.progress, "workload.command.progress");
    for (const command::Metric& metric : command.metrics) {
      check("json", metric.json, fmt::format("workload.command.metrics.{}.json", metric.name));
    }
  }

  void checkTarget(const Fault& fault, const std::string& path) {
    if (kind_.strikesManagement || !findings_.usable({path}) || !fault.target) return;
    if (fault.target->part != Part::kManagement) return;
    fail(path + ".target",
         fmt::format("target: the management network of a cluster of kind {} cannot be struck: "
                     "write 'rail'",
                     kind_.name));
  }

  void checkFault(const std::string& name, const injector::FaultParameters& parameters,
                  const std::string& path) {
    const injector::FaultKind* const fault = injector::findFaultKind(name);
    if (fault == nullptr || !findings_.usable({path})) return;
    site::Refusal refusal = kind_.refusal(*fault, parameters);
    if (refusal.key.empty()) return;
    const site::Kind* const other =
        refusal.key == site::kRefusedKind ? site::firstKindWith(*fault) : nullptr;
    if (other != nullptr) refusal.reason += fmt::format(". Possible with '{}'", clusterOf(*other));
    fail(fmt::format("{}.{}", path, refusal.key), std::move(refusal.reason));
  }

  static constexpr std::string_view kRailRate = "rail_rate";

  const Scenario& scenario_;
  const site::Kind& kind_;
  const Node& root_;
  Findings& findings_;
};

}  // namespace

void checkSite(const Scenario& scenario, const Node& root, Findings& findings) {
  if (findings.usable({"cluster.kind"})) SiteChecker(scenario, root, findings).check();
}

}  // namespace faultline::scenario
