#include "harness/site/rdma_vm/rail_view.h"

namespace faultline::rdma_vm {
namespace {

// Behind the last packet of a guest that is switched off there may be some in a queue.
constexpr Duration kStillHere = 200ms;

constexpr const char* kActivePort = "4: ACTIVE";
constexpr const char* kDownPort = "1: DOWN";

}  // namespace

bool isWhole(const wire::RailState& state) { return state.carrier && state.rdma == kActivePort; }

bool isPulled(const RailView& view) {
  return view.seen && !view.seen->carrier && view.seen->rdma == kDownPort &&
         view.silent >= kStillHere;
}

bool isCutOff(const RailView& view) {
  return view.seen && isWhole(*view.seen) && view.arrived > 0 && view.dropped > 0 &&
         view.unserved >= kStillHere;
}

}  // namespace faultline::rdma_vm
