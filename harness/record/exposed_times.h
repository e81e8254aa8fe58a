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
    double ms = 0;
    int ranks = 0;
  };
  std::map<int, Sum> iterationMs_;
  std::map<std::string, double> ms_;  ///< by phase, of all ranks and iterations
  double iterationsMs_ = 0;
  int iterations_ = 0;  ///< of all ranks
};

}  // namespace faultline::run
