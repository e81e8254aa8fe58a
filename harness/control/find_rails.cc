#include "harness/control/find_rails.h"

#include <fmt/format.h>

#include "harness/control/fault_control.h"
#include "harness/scenario/cluster_reader.h"
#include "harness/site/kind.h"

namespace faultline::run {

Status findRails(scenario::Scenario& scenario, Interrupt& interrupt,
                 const std::function<void(const std::string& line)>& say) {
  scenario::Cluster& cluster = scenario.cluster;
  if (!cluster.kind->findsRails) return okStatus();
  site::ClusterSpec spec = scenario::specOf(cluster);
  spec.run = scenario.name;
  ASSIGN_OR_RETURN(const auto built, cluster.kind->make(spec));
  const GiveUp giveUp = [&] { return interrupt.pending(); };
  RETURN_IF_ERROR(built->build(giveUp));
  cluster.rails = built->rails();
  cluster.railChoice.automatic = false;
  // What the language cannot say, nobody could read again: the environment has it all the same.
  if (cluster.railRate == 0 && scenario::isRailRate(built->railRate())) {
    cluster.railRate = built->railRate();
  }
  ASSIGN_OR_RETURN(const auto described, built->describe());
  for (const auto& [name, value] : described) say(fmt::format("{}: {}", name, value));
  // What may not be struck is told before anything runs.
  return FaultControl::create(scenario, *built, giveUp).status();
}

}  // namespace faultline::run
