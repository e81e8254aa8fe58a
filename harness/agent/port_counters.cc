#include "harness/agent/port_counters.h"

#include "injector/netlink/namespace.h"

namespace faultline::agent {

Result<PortCounters> PortCounters::open(int networkFd, const wire::WatchCounters& wanted) {
  UniqueFd own;
  if (networkFd < 0) {
    ASSIGN_OR_RETURN(own, netlink::currentNamespace());
    networkFd = own.get();
  }
  ASSIGN_OR_RETURN(netlink::CounterFile file, netlink::CounterFile::open(networkFd));
  return PortCounters(std::move(file), wanted);
}

Result<wire::CountersTold> PortCounters::read(TimePoint time) {
  wire::CountersTold told;
  told.ports.resize(interfaces_.size());
  RETURN_IF_ERROR(file_.read([&](std::string_view name, const netlink::LinkCounters& counters) {
    for (std::size_t i = 0; i < interfaces_.size(); ++i) {
      if (interfaces_[i] == name) told.ports[i] = {counters.tx_bytes, counters.rx_bytes};
    }
  }));
  readAt_ = time;
  due_ = time + every_;
  return told;
}

}  // namespace faultline::agent
