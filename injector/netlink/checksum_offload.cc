#include "injector/netlink/checksum_offload.h"

#include <linux/ethtool.h>

#include <cstdint>

#include "injector/netlink/ethtool.h"
#include "injector/netlink/interface.h"

namespace faultline::netlink {
namespace {

/// One question or order of ethtool to the interface; its answer.
Result<std::uint32_t> ask(const LinkEnd& end, std::uint32_t command, std::uint32_t value) {
  ASSIGN_OR_RETURN(const NetDevice link, readNetDevice(*end.socket, end.ifindex));
  ethtool_value ethtool{.cmd = command, .data = value};
  RETURN_IF_ERROR(callEthtool(*end.socket, link.name, &ethtool, "transmit checksums"));
  return ethtool.data;
}

}  // namespace

Result<bool> leavesChecksums(const LinkEnd& end) {
  ASSIGN_OR_RETURN(const std::uint32_t on, ask(end, ETHTOOL_GTXCSUM, 0));
  return on != 0;
}

Status setLeavesChecksums(const LinkEnd& end, bool leaves) {
  RETURN_IF_ERROR(ask(end, ETHTOOL_STXCSUM, leaves ? 1 : 0).status());
  ASSIGN_OR_RETURN(const bool now, leavesChecksums(end));
  if (now == leaves) return okStatus();
  return errorf(Code::kUnsupported, "interface {}: transmit checksums cannot be switched {}",
                end.ifindex, leaves ? "on" : "off");
}

}  // namespace faultline::netlink
