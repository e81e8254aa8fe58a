#pragma once

#include "base/status.h"
#include "injector/netlink/link_target.h"

namespace faultline::netlink {

/// Whether checksums, and the cutting of large packets, are left to the interface (ethtool's
/// tx-checksumming; without it there is no segmentation offload either). A veth pair does neither:
/// what is left to it arrives without a checksum, in pieces of up to 64 KiB, and is believed.
/// kUnsupported when the interface cannot tell.
Result<bool> leavesChecksums(const LinkEnd& end);

/// Off: the kernel cuts and computes before it sends, as a wire would carry it. kUnsupported when
/// the interface does not do that.
Status setLeavesChecksums(const LinkEnd& end, bool leaves);

}  // namespace faultline::netlink
