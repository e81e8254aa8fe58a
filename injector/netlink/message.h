#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace faultline::netlink {

/// Flag of a request that must make something new.
constexpr int kCreateNew = NLM_F_CREATE | NLM_F_EXCL;

/// Of requests about qdiscs, classes and filters.
inline tcmsg trafficControlHeader(int ifindex, std::uint32_t handle, std::uint32_t parent) {
  tcmsg header{};
  header.tcm_family = AF_UNSPEC;
  header.tcm_ifindex = ifindex;
  header.tcm_handle = handle;
  header.tcm_parent = parent;
  return header;
}

/// A netlink request under construction: a family header and attributes, over libnl's nl_msg.
/// Running out of memory ends the program.
class Message {
 public:
  /// `type` is RTM_..., `flags` NLM_F_... (request and acknowledgement flags come by themselves),
  /// `header` the family's structure (ifinfomsg, tcmsg, ...).
  template <typename Header>
  Message(int type, int flags, const Header& header) : Message(type, flags) {
    append(&header, sizeof header);
  }
  /// The same request as one that was received: type, flags, then a payload with its attributes, of
  /// any length.
  Message(int type, int flags, std::string_view payload);
  Message(Message&& other) noexcept;
  Message& operator=(Message&&) = delete;
  ~Message();

  Message& put(int attribute, std::uint8_t value) { return put(attribute, &value, sizeof value); }
  Message& put(int attribute, std::uint16_t value) { return put(attribute, &value, sizeof value); }
  Message& put(int attribute, std::uint32_t value) { return put(attribute, &value, sizeof value); }
  Message& put(int attribute, std::uint64_t value) { return put(attribute, &value, sizeof value); }
  /// A zero-terminated string.
  Message& putString(int attribute, std::string_view value);
  Message& put(int attribute, const void* data, std::size_t size);

  /// Appends bytes that are not an attribute, e.g. the ifinfomsg inside VETH_INFO_PEER.
  Message& append(const void* data, std::size_t size);

  /// Everything put inside `body()` becomes the content of `attribute`.
  template <typename Body>
  Message& nest(int attribute, Body body) {
    nlattr* const start = begin(attribute);
    body(*this);
    nla_nest_end(message_, start);
    return *this;
  }

  nl_msg* get() const { return message_; }

 private:
  Message(int type, int flags);
  nlattr* begin(int attribute);
  nl_msg* message_;
};

/// The attributes of a received message or of a nested attribute, by number; nullptr where absent.
template <int kMax>
class Attributes {
 public:
  Attributes(const nlmsghdr* header, int family_header_size) {
    nlmsg_parse(const_cast<nlmsghdr*>(header), family_header_size, table_, kMax, nullptr);
  }
  explicit Attributes(const nlattr* nested) {
    nla_parse_nested(table_, kMax, const_cast<nlattr*>(nested), nullptr);
  }
  const nlattr* operator[](int attribute) const { return table_[attribute]; }

  /// The value, or `otherwise` when the attribute is absent or too short.
  template <typename T>
  T value(int attribute, T otherwise = {}) const {
    const nlattr* const found = table_[attribute];
    if (found == nullptr || nla_len(found) < static_cast<int>(sizeof(T))) return otherwise;
    T result;
    __builtin_memcpy(&result, nla_data(found), sizeof result);
    return result;
  }
  /// Up to its terminating zero, or the end of the attribute where there is none.
  std::string_view text(int attribute) const {
    const nlattr* const found = table_[attribute];
    if (found == nullptr) return {};
    const auto* const begin = static_cast<const char*>(nla_data(found));
    return {begin, ::strnlen(begin, static_cast<std::size_t>(nla_len(found)))};
  }

 private:
  nlattr* table_[kMax + 1] = {};
};

/// Calls `visit` for each attribute inside `nested`, of whatever type; nothing when that is
/// nullptr. For lists, whose elements all have the same type.
template <typename Visit>
void forEachNested(const nlattr* nested, Visit visit) {
  if (nested == nullptr) return;
  int left = nla_len(nested);
  for (auto* element = static_cast<nlattr*>(nla_data(nested)); nla_ok(element, left) != 0;
       element = nla_next(element, &left)) {
    visit(static_cast<const nlattr*>(element));
  }
}

}  // namespace faultline::netlink
