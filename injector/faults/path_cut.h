#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/probe_round.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// The path between two links of one switch loses everything in both directions; both links stay up
/// and reach everybody else. The bridge isolates both ports: with the first nothing changes, with
/// the second both directions are cut at once. Evidence: probe frames of either NIC leave the
/// switch by another port, and none leaves by the port of the peer. Where no other port forwards
/// (faults have them all), it is enough that they reach the switch's own interface.
class PathCut final : public Fault {
 public:
  PathCut(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~PathCut() override;
  /// kUnsupported when the switch has no third port: nobody could tell the path from a link.
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override {
    return "netlink: the switch's two ports are isolated from each other";
  }

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  /// Frames of one NIC of the two.
  struct Way {
    netlink::LinkEnd from;
    netlink::LinkEnd to;                // the switch's port of the peer
    std::optional<ProbeRound> probe{};  // from the first look on

    int crossed() const { return probe->passed(0); }
  };

  int byOthers(const Way& way) const;  // frames, of the port that most left by
  int atSwitch(const Way& way) const;
  bool reached(const Way& way) const;  // the switch, and left it where they could
  Status noteForwarding(bool begins);

  Status openProbes();
  Status waitUntilWhole();
  Status setIsolated(bool isolated);

  netlink::LinkTarget target_;
  std::array<Way, 2> ways_;
  std::vector<int> others_;      ///< ports besides those of the two; some of them
  std::vector<int> forwarding_;  ///< of them, since the probes began
  bool switch_listens_ = false;  ///< after `others_`
  std::string peer_address_;
  bool applied_ = false;

  bool probing_ = false;  // since the last strike
  bool carriers_ = false;
  TimePoint latest_{};
  std::optional<TimePoint> reached_;  ///< when all probes had reached the switch
};

}  // namespace faultline::injector
