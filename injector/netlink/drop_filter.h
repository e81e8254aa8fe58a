#pragma once

#include <span>
#include <string>

#include "base/status.h"
#include "injector/netlink/packet_hook.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// Drops a share of them at random; 1: all.
struct DropRule {
  Passing passing = Passing::kReceived;
  double share = 1;
  bool only_roce = false;  ///< only RoCE v2, all of it whatever the share; else whatever they carry
  /// A local sender is told of frames that are dropped on their way out, and one like rxe then
  /// tries again at once and for ever, instead of missing an answer. With this it believes them
  /// sent.
  bool unnoticed = false;
};

/// Its program in the words of tc: "1,6 0 0 2". Pure.
std::string bytecodeOf(const DropRule& rule);

/// Makes the interface drop frames (clsact with a cls_bpf filter for each
/// rule). Foreign state is left alone: kAlreadyExists when the interface has a clsact of
/// somebody's. kUnsupported when the kernel lacks the mechanism.
Status addDropRules(Socket& socket, int ifindex, std::span<const DropRule> rules);

/// Removes what addDropRules() has made.
Status removeDropRules(Socket& socket, int ifindex);

}  // namespace faultline::netlink
