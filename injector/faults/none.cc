#include "injector/faults/none.h"

#include "injector/faults/fault_list.h"
#include "injector/faults/usual_rows.h"

namespace faultline::injector {

constinit const FaultKind kNoneKind{
    .name = "none",
    .summary = "Does nothing. For testing the bench: a run with it must be INVALID.",
    .sees = "nothing",
    .evidence = "there is none, ever",
    .undo = "nothing to undo",
    .target = TargetKind::kNone,
    .damage = nothing,
    .make = makeOne<None>};

None::None(const FaultParameters& /*parameters*/, const netlink::LinkTarget& /*target*/) {}

Status None::prepare() { return okStatus(); }

Status None::apply() {
  applied_ = true;
  return transit(true, [] { return okStatus(); });
}

Status None::step(TimePoint /*now*/) { return okStatus(); }

Status None::revert() {
  if (!std::exchange(applied_, false)) return okStatus();
  return transit(false, [] { return okStatus(); });
}

bool None::conclusive() const { return true; }

Evidence None::verdict() const {
  return {"none", "nothing", "this fault does nothing, and nothing was seen", false};
}

}  // namespace faultline::injector
