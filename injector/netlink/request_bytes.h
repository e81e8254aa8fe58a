#pragma once

#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>

/// Requests as plain bytes: built, copied from what the kernel tells, and changed in place.
namespace faultline::netlink {

/// A family's structure with attributes behind it.
class RequestBuilder {
 public:
  template <typename Header>
  explicit RequestBuilder(const Header& header) {
    append(&header, sizeof header);
  }
  /// As it is; nothing where it is nullptr.
  void copy(const nlattr* attribute);
  void put(int type, const void* data, std::size_t size);
  template <typename T>
  void put(int type, const T& value) {
    put(type, &value, sizeof value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void append(const void* data, std::size_t size);
  std::string bytes_;
};

/// The structure in front of the attributes; zeros where there are fewer bytes.
template <typename Header>
Header headerOf(const std::string& request) {
  Header header{};
  __builtin_memcpy(&header, request.data(), std::min(sizeof header, request.size()));
  return header;
}
template <typename Header>
void setHeader(std::string& request, const Header& header) {
  __builtin_memcpy(request.data(), &header, std::min(sizeof header, request.size()));
}

/// Calls `visit` for each attribute from `offset` on. Those of a request may be changed, in place.
template <typename Visit>
void forEachAttribute(std::string& request, std::size_t offset, Visit visit) {
  if (offset >= request.size()) return;
  int left = static_cast<int>(request.size() - offset);
  for (auto* one = reinterpret_cast<nlattr*>(request.data() + offset); nla_ok(one, left) != 0;
       one = nla_next(one, &left)) {
    visit(one);
  }
}

/// What an attribute holds; nothing where it is nullptr.
inline std::string bytesOf(const nlattr* attribute) {
  if (attribute == nullptr) return "";
  return {static_cast<const char*>(nla_data(attribute)),
          static_cast<std::size_t>(nla_len(attribute))};
}

/// A request as the message in which the kernel tells of it, to be looked at with Attributes.
class RequestMessage {
 public:
  RequestMessage(int type, const std::string& request);
  const nlmsghdr* get() const { return reinterpret_cast<const nlmsghdr*>(bytes_.data()); }

 private:
  std::string bytes_;
};

}  // namespace faultline::netlink
