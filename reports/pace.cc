#include "reports/pace.h"

#include <algorithm>
#include <optional>

namespace faultline::reports {
namespace {

double endOf(const Iteration& iteration) { return iteration.start_ms + iteration.ms; }

/// Splits the iterations of one run, in the order in which they ended.
class Pieces {
 public:
  explicit Pieces(const Run& run) : run_(run) {}

  std::vector<Pace> make() {
    for (const Iteration& iteration : run_.iterations) {
      const std::optional<double> struck = firstFaultIn(iteration);
      if (iteration.attempts > 1) {
        interrupted(iteration, struck);
      } else if (struck) {
        split(iteration, *struck);
      } else {
        add(iteration.index, iteration.start_ms, endOf(iteration), 1);
        usual_ms_ = iteration.ms;
      }
      last_end_ = std::max(last_end_, endOf(iteration));
    }
    if (run_.unfinished) {
      const double begin = std::max(run_.unfinished->start_ms, last_end_);
      const double struck = firstFaultIn(*run_.unfinished).value_or(begin);
      before(*run_.unfinished, struck);
      add(run_.unfinished->index, std::max(begin, struck), endOf(*run_.unfinished), 0);
    }
    std::ranges::stable_sort(pieces_, {}, &Pace::start_ms);
    return std::move(pieces_);
  }

 private:
  std::optional<double> firstFaultIn(const Iteration& iteration) const {
    std::optional<double> first;
    for (const AppliedFault& fault : run_.faults) {
      const bool within = fault.start_ms > iteration.start_ms && fault.start_ms < endOf(iteration);
      if (within) first = std::min(first.value_or(fault.start_ms), fault.start_ms);
    }
    return first;
  }

  void add(int index, double from, double to, double count) {
    if (to > from) pieces_.push_back({index, from, to - from, count});
  }

  /// What was done of it until then, which is lost.
  void before(const Iteration& iteration, double struck) {
    if (!usual_ms_ || *usual_ms_ <= 0) return;
    const double end = std::min(struck, iteration.start_ms + *usual_ms_);
    add(iteration.index, iteration.start_ms, end, (end - iteration.start_ms) / *usual_ms_);
  }

  void interrupted(const Iteration& iteration, std::optional<double> struck) {
    // What was done again meanwhile has ended by then, and the job had been loaded.
    double resumed = std::max(iteration.start_ms, last_end_);
    for (const Restart& restart : run_.restarts) {
      const double loaded =
          restart.fault_ms + restart.hang_ms + restart.isolate_ms + restart.load_ms;
      if (loaded < endOf(iteration)) resumed = std::max(resumed, loaded);
    }
    for (const Shrink& shrink : run_.shrinks) {
      if (shrink.resumed_ms < endOf(iteration)) resumed = std::max(resumed, shrink.resumed_ms);
    }
    if (struck) before(iteration, *struck);
    add(iteration.index, resumed, endOf(iteration), 1);
  }

  void split(const Iteration& iteration, double struck) {
    const double done = usual_ms_ ? (struck - iteration.start_ms) / *usual_ms_ : 1;
    if (done >= 1) {  // it was late already
      add(iteration.index, iteration.start_ms, endOf(iteration), 1);
      return;
    }
    add(iteration.index, iteration.start_ms, struck, done);
    add(iteration.index, struck, endOf(iteration), 1 - done);
  }

  const Run& run_;
  std::vector<Pace> pieces_;
  std::optional<double> usual_ms_;  // of the last iteration that no fault struck
  double last_end_ = 0;
};

}  // namespace

std::vector<Pace> paceOf(const Run& run) { return Pieces(run).make(); }

}  // namespace faultline::reports
