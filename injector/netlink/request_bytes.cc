#include "injector/netlink/request_bytes.h"

namespace faultline::netlink {

void RequestBuilder::append(const void* data, std::size_t size) {
  bytes_.append(static_cast<const char*>(data), size);
  bytes_.resize(NLMSG_ALIGN(bytes_.size()));
}

void RequestBuilder::copy(const nlattr* attribute) {
  if (attribute != nullptr) append(attribute, attribute->nla_len);
}

void RequestBuilder::put(int type, const void* data, std::size_t size) {
  nlattr attribute{};
  attribute.nla_type = static_cast<std::uint16_t>(type);
  attribute.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + size);
  append(&attribute, sizeof attribute);
  append(data, size);
}

RequestMessage::RequestMessage(int type, const std::string& request) {
  nlmsghdr header{};
  header.nlmsg_type = static_cast<std::uint16_t>(type);
  header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_HDRLEN + request.size());
  bytes_.assign(reinterpret_cast<const char*>(&header), sizeof header);
  bytes_.resize(NLMSG_HDRLEN);
  bytes_ += request;
}

}  // namespace faultline::netlink
