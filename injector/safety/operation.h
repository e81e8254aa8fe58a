#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/number_range.h"
#include "base/status.h"
#include "base/units.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/socket.h"

/// Changes of the kernel's state, each with its inverse, as data: what is printed, journaled, done
/// and undone is one thing. To add one: a struct, its place in the variant, and its functions in
/// operation.cc.
namespace faultline::safety {

/// The interface is switched off. Its routes and global IPv6 addresses are lost with that.
struct LinkDown {
  static constexpr const char* kType = "link_down";
  bool operator==(const LinkDown&) const = default;
};

/// A queue of our own handle (tbf) where there is only the kernel's default: what is sent passes at
/// this rate and no faster.
struct SendLimit {
  static constexpr const char* kType = "send_limit";
  BitsPerSecond rate = 0;
  bool operator==(const SendLimit&) const = default;
};

/// Filters of our own priority in a hook of our own (clsact): all that the interface sends, or
/// receives, is dropped, and its link stays up.
struct DropFrames {
  static constexpr const char* kType = "drop_frames";
  bool sent = true;
  bool received = true;
  bool operator==(const DropFrames&) const = default;
};

/// The same of a share of the frames, at random: per cent of what it sends, and of what it
/// receives.
struct LoseFrames {
  static constexpr const char* kType = "lose_frames";
  double sentPercent = 0;
  double receivedPercent = 0;
  bool operator==(const LoseFrames&) const = default;
};

using Operation = std::variant<LinkDown, SendLimit, DropFrames, LoseFrames>;

template <typename V, typename T>
requires std::same_as<std::remove_const_t<T>, LinkDown>
void visitFields(V& /*v*/, T& /*down*/) {}

template <typename V, typename T>
requires std::same_as<std::remove_const_t<T>, SendLimit>
void visitFields(V& v, T& limit) { v.required("rate", limit.rate); }

template <typename V, typename T>
requires std::same_as<std::remove_const_t<T>, DropFrames>
void visitFields(V& v, T& drop) {
  v.required("sent", drop.sent);
  v.required("received", drop.received);
}

template <typename V, typename T>
requires std::same_as<std::remove_const_t<T>, LoseFrames>
void visitFields(V& v, T& lose) {
  v.required("sent_percent", lose.sentPercent, NumberRange{.least = 0, .most = 100});
  v.required("received_percent", lose.receivedPercent, NumberRange{.least = 0, .most = 100});
}

/// The command that does the same, and the one that undoes it: "ip link set dev eth1 down". Several
/// are joined by " && ". Pure.
std::string commandOf(const Operation& operation, std::string_view interface);
std::string inverseOf(const Operation& operation, std::string_view interface);

/// Whether the interface loses routes and addresses by it. Pure.
bool losesConfiguration(const Operation& operation);

/// Whether it can be done here without replacing what is somebody else's. Changes nothing.
/// kUnavailable where the interface is broken already, kAlreadyExists where something foreign is in
/// the way.
Status check(const Operation& operation, netlink::Socket& socket, int ifindex);

/// Whether an interface can go down without a loss to those that sit on it. VLANs go down with it,
/// and their addresses and routes are not saved: kUnavailable, with their names. Pure.
Status refuseLossAbove(const std::vector<netlink::NetDevice>& links, int ifindex);

Status apply(const Operation& operation, netlink::Socket& socket, int ifindex);

/// Whether what apply() has done is still there.
Result<bool> isInEffect(const Operation& operation, netlink::Socket& socket, int ifindex);

/// Takes it back; only to be called where it is in effect.
Status undo(const Operation& operation, netlink::Socket& socket, int ifindex);

}  // namespace faultline::safety
