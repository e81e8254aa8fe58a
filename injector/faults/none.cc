#include "injector/faults/none.h"

namespace faultline::injector {

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
