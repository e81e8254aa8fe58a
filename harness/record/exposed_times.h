#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/result.h"
#include "wire/rank.h"

namespace faultline::run {

/// How long computing stood still for communication, put together from what the ranks of a run say
/// at the end of their measured iterations. Of workloads that do not follow from a model it has no
/// rows. No clock, no machine.
class ExposedTimes {
 public:
  void ended(const wire::End& message);
  /// In the order of model::Phase: those for which something stood still.
  std::vector<reports::ExposedPhase> rows() const;
  /// Of all phases of one iteration, mean over the ranks; nullopt: it is not known.
  std::optional<double> ofIteration(int index) const;

 private:
  struct Sum {
    Duration time{};
    int ranks = 0;
  };
  std::map<int, Sum> byIteration_;
  std::map<std::string, Duration> times_;  ///< by phase, of all ranks and iterations
  Duration iterationsTime_{};
  int iterations_ = 0;  ///< of all ranks
};

}  // namespace faultline::run
