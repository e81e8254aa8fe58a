#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "injector/fault.h"
#include "injector/faults/crossing_probe.h"
#include "injector/faults/port_program.h"
#include "injector/netlink/link_target.h"
#include "injector/netlink/packet_program.h"

namespace faultline::injector {

/// A fault that is programs on the switch's port, and that probe frames across the link prove. The
/// kinds differ in the programs, the probes, and what these must have seen.
class PortProgramFault : public Fault {
 public:
  ~PortProgramFault() override;

  Status apply() final;
  Status step(TimePoint now) final;
  Status revert() final;
  std::string mechanism() const final { return PortProgram::kMechanism; }

 protected:
  PortProgramFault(std::string_view kind, const netlink::LinkTarget& target)
      : target_(target), kind_(kind), program_(target) {}

  /// `broken`: those that are the fault. Otherwise the same, that strike nothing.
  virtual std::vector<netlink::PacketProgram> programs(bool broken) const = 0;
  /// The last of them shows when all of them are through.
  virtual Result<std::vector<CrossingProbe>> openProbes() const = 0;
  /// What else is to be seen. About every millisecond.
  virtual Status look() { return okStatus(); }
  /// Whether what the probes have seen is this fault. They have been there for a while.
  virtual bool fits() const = 0;
  virtual std::string seen() const = 0;

  /// Whether the link is whole for probes of these sizes, and such programs can be run.
  Status tryOut(std::size_t payload = ProbeRound::kSmallestPayload);

  bool conclusive() const final;
  Evidence verdict() const final;

  netlink::LinkTarget target_;
  std::vector<CrossingProbe> probes_;  ///< from the first strike on

 private:
  Status beginProbing();

  std::string kind_;
  PortProgram program_;
  bool applied_ = false;
  bool probing_ = false;  // since the last strike
  TimePoint latest_{};
  std::optional<TimePoint> reached_;  // when the probes had left the NIC and the switch
};

}  // namespace faultline::injector
