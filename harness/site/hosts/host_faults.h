#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"
#include "harness/site/agents.h"
#include "harness/site/cluster.h"
#include "harness/site/holder_line.h"
#include "harness/site/kind.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"

namespace faultline::hosts {

/// Whether hosts can have this fault, of an interface or of the run's own processes, with these
/// parameters. Pure.
site::Refusal refusal(const injector::FaultKind& kind, const injector::FaultParameters& parameters);

/// How much longer than its duration a fault of an interface may last, for evidence of it. Pure.
Duration spareOf(const injector::FaultKind& kind, const injector::FaultParameters& parameters);

/// The faults of the hosts. Those of interfaces are held by the fault service of their host, and
/// undone by it whatever dies; those of processes by a child of its agent, which strikes only what
/// this run has started there.
class HostFaults final : public site::HolderLine {
 public:
  /// `agents`, `names` and `network`, of the hosts, are borrowed, and outlive it. `lease`: a
  /// service that hears nothing for so long takes its fault back. `run`: what it is called there,
  /// for people.
  HostFaults(site::Agents& agents, const std::vector<std::string>& names,
             const std::vector<site::NodeNetwork>& network, Duration lease, std::string run);

  /// `railRate`: of which a scenario may write a percentage; 0: it is not known.
  Result<std::unique_ptr<injector::Fault>> make(const injector::FaultKind& kind,
                                                const injector::FaultParameters& parameters,
                                                const site::FaultTarget& target,
                                                BitsPerSecond railRate);

  /// What a process of the run on this host must have in its environment.
  std::pair<std::string, std::string> markOf(int host) const;

  /// What all services are asked, before the first fault.
  Status askServices();
  /// What they have said, for the environment of a result.
  std::string inWords() const;

  /// What becomes of the faults of a host that is lost, "with ...", for people; empty: it has none.
  std::string leftAt(int host) const;

  Result<int> startFault(int node, const wire::HeldFault& fault) override;
  Status tellFault(int fault, const wire::ToHolder& message) override;
  /// One of a host that is lost has ended.
  std::optional<wire::FromHolder> faultSaid(int fault) override;
  Status endFault(int fault) override;
  /// A host that is lost is told of by faultSaid(), and leaves the faults of others as they are.
  Status listen(Duration timeout) override;

 private:
  struct Held {
    int host = 0;
    std::string what;  ///< "port_down of rail0"
    bool ofInterface = false;
    bool inEffect = false;  ///< as far as it was told
    bool gone = false;
  };

  Result<std::unique_ptr<injector::Fault>> makeOfInterface(
      const injector::FaultKind& kind, const injector::FaultParameters& parameters,
      const site::FaultTarget& target, BitsPerSecond railRate);
  std::unique_ptr<injector::Fault> makeOfProcesses(const injector::FaultKind& kind,
                                                   const injector::FaultParameters& parameters,
                                                   const site::FaultTarget& target);
  wire::AskFaultService questionOf(int host) const;
  /// Waits until the service of the host says that nothing of it is left; `why`: what kept its
  /// holder from saying that.
  Status awaitUndo(int host, const std::string& interface, const Status& why);
  const std::string& name(int host) const { return names_[static_cast<std::size_t>(host)]; }

  site::Agents& agents_;
  const std::vector<std::string>& names_;
  const std::vector<site::NodeNetwork>& network_;
  Duration lease_;
  std::string run_;
  std::string mark_;  // of what this run starts
  std::map<int, Held> held_;
};

}  // namespace faultline::hosts
