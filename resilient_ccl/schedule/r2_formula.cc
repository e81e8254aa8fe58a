#include "resilient_ccl/schedule/r2_formula.h"

#include <algorithm>
#include <vector>

#include "resilient_ccl/schedule/layered_all_reduce.h"

namespace faultline::schedule {

double r2FormulaOverRing(int ranks, double lost, double chunks) {
  const double n = ranks;
  return 1 + n * lost / (2 * (n - 1) * (1 - lost)) * (1 + 1 / chunks);
}

std::optional<int> r2Chunks(const ScheduleRequest& request) {
  const auto layers = ringLayers(request.ranks, request.elements, request.segments,
                                 request.bandwidths.slower(), false);
  if (layers.empty() || layers.back().excluded.empty()) return std::nullopt;
  return pipelineChunks(layers.back(), request.segments);
}

std::optional<R2Formula> r2Formula(const ScheduleRequest& request, const PortBandwidths& left) {
  const std::vector<double> ports = left.slower();
  if (request.ranks < 2 || std::ssize(ports) != request.ranks) return std::nullopt;
  const auto slow = std::ranges::count_if(ports, [](double port) { return port < 1; });
  if (slow > 1) return std::nullopt;
  if (slow == 0) return R2Formula{};
  const double r = std::ranges::min(ports);
  R2Formula formula{r2Chunks(request), 1 / r};
  if (!formula.chunks) {
    ScheduleRequest fitting = request;
    fitting.bandwidths = left;
    formula.chunks = r2Chunks(fitting);
  }
  if (formula.chunks) {
    formula.timeOverRing = r2FormulaOverRing(request.ranks, 1 - r, *formula.chunks);
  }
  return formula;
}

}  // namespace faultline::schedule
