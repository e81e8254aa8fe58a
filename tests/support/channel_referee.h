#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/channel_script.h"

namespace faultline::test {

/// Watches the rails of a simulated world and compares what the two links do with what is really
/// broken. It shares no logic with the link.
class Referee {
 public:
  Referee(SimWorld& world, const Script& script);

  /// To be told of every change of a rail.
  void changed(const RailChange& change);
  /// Judges the failovers that the ends have reported; to be called at the end.
  void judgeFailovers();

  std::vector<std::string>& problems() { return problems_; }
  Coverage& coverage() { return coverage_; }

 private:
  void givenUp(const RailChange& change);
  void reopened(const RailChange& change);
  void expectPeerKnows(const RailChange& change);
  /// The rail of the only fault, when there is nothing else that could mislead anybody; or -1.
  int onlyBlackHole() const;

  struct RailState {
    std::map<std::uint32_t, TimePoint> firstUp;  // by epoch
    TimePoint closed{};                          // at the connecting end, the last time
    TimePoint upAgain{};                         // since when it is up there after a failure
    Duration holdOff{};
  };

  SimWorld& world_;
  const Script& script_;
  std::vector<RailState> rails_;
  std::vector<std::string> problems_;
  Coverage coverage_;
};

}  // namespace faultline::test
