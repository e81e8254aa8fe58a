#pragma once

#include <optional>

#include "resilient_ccl/schedule/algorithms.h"

namespace faultline::schedule {

/// What R2CCL's authors say that their degraded AllReduce takes on fluid ports, over the fault-free
/// ring: 1 + n X / (2(n-1)(1-X)) (1 + 1/K) for n ranks of which one lost the share X of its
/// bandwidth, when the share Y = X of the buffer goes through it in K chunks (arXiv 2512.25059,
/// optimum of max(T1, T2) + T3). Bandwidths only. `ranks` >= 2, `lost` in [0, 1), `chunks` >= 1;
/// infinite: no time to fill the pipeline. Not less than Balance's 1/(1-X) where K is small.
double r2FormulaOverRing(int ranks, double lost, double chunks);

/// K of the `r2_allreduce` that is made for a request: the chunks in which the part of the fast
/// ring goes through the slow rank, which are more than the request's segments where those are no
/// multiple of the fast ranks (and their turns). nullopt where there is only the ring of all,
/// because no rank is slow or the pipeline would cost what it saves.
std::optional<int> r2Chunks(const ScheduleRequest& request);

/// The formula for a schedule as it was made.
struct R2Formula {
  std::optional<int> chunks;  ///< K; nullopt: only the ring of all ranks, as Balance
  double timeOverRing = 1;
};

/// What an `r2_allreduce` that was made for `request` should take on ports of which `left` is left
/// (the slower direction of each): `r2FormulaOverRing` for its K, or that of a request made for
/// `left` when it was made for whole ports; 1/(1-X) where the ring is all there is. nullopt for
/// less than two ranks and for more than one slow rank, for which the authors have no formula.
std::optional<R2Formula> r2Formula(const ScheduleRequest& request, const PortBandwidths& left);

}  // namespace faultline::schedule
