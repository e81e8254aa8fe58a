// In the place of steering_calls.cc and steering_drop.cc where this is built without mlx5dv.h: no
// rule can be prepared, and so there is none to install.
#include "injector/rdma/steering_drop.h"

namespace faultline::rdma {

Result<SteeringCalls> loadSteeringCalls(const SteeringLibraries&) {
  return errorf(Code::kUnsupported,
                "a steering rule of mlx5 needs a faultline that was built with the headers of "
                "rdma-core; install libibverbs-dev (Debian, Ubuntu), configure and build again");
}

SteeringDrop::SteeringDrop(SteeringCalls calls, std::string device)
    : calls_(std::move(calls)), device_(std::move(device)) {}
SteeringDrop::~SteeringDrop() = default;
Status SteeringDrop::prepare(SteeringWays) { return loadSteeringCalls().status(); }
Status SteeringDrop::install() { return loadSteeringCalls().status(); }
Status SteeringDrop::remove() { return okStatus(); }

}  // namespace faultline::rdma
