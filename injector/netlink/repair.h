#pragma once

#include <linux/netlink.h>

#include <string>
#include <vector>

namespace faultline::netlink {

inline constexpr int kReplace = NLM_F_CREATE | NLM_F_REPLACE;

/// A request with the flags that say whether it may replace something.
struct RepairRequest {
  std::string bytes;
  int flags = 0;  ///< NLM_F_...
};

/// How something is put back.
struct Repair {
  /// In this order; the first that the kernel takes is enough.
  std::vector<RepairRequest> attempts;
  /// After it, to make it as it was: of an address that was added without looking for duplicates.
  /// An address with a rival is left as it is (hasRival()), as is one of which the kernel refuses
  /// this: it keeps IFA_F_NODAD.
  std::vector<RepairRequest> afterwards{};
  /// Routes that give way before (RTM_DELROUTE), as the kernel changes none that another one stands
  /// before, and moves none. Of those, all but the last are missing afterwards, and put back next.
  std::vector<std::string> removals{};
};

}  // namespace faultline::netlink
