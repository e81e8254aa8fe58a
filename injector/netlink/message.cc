#include "injector/netlink/message.h"

#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>

namespace faultline::netlink {
namespace {

// For the attributes that come behind a payload.
constexpr std::size_t kRoom = 4096;

void require(bool success) {
  if (!success) std::abort();  // out of memory while building a message of a few hundred bytes
}

}  // namespace

Message::Message(int type, int flags) : message_(nlmsg_alloc_simple(type, flags)) {
  require(message_ != nullptr);
}

Message::Message(int type, int flags, std::string_view payload)
    : message_(nlmsg_alloc_size(NLMSG_SPACE(payload.size()) + kRoom)) {
  require(message_ != nullptr &&
          nlmsg_put(message_, NL_AUTO_PORT, NL_AUTO_SEQ, type, 0, flags) != nullptr);
  append(payload.data(), payload.size());
}

Message::Message(Message&& other) noexcept : message_(std::exchange(other.message_, nullptr)) {}

Message::~Message() { nlmsg_free(message_); }

Message& Message::putString(int attribute, std::string_view value) {
  const std::string terminated(value);
  return put(attribute, terminated.c_str(), terminated.size() + 1);
}

Message& Message::put(int attribute, const void* data, std::size_t size) {
  require(nla_put(message_, attribute, static_cast<int>(size), data) == 0);
  return *this;
}

Message& Message::append(const void* data, std::size_t size) {
  require(nlmsg_append(message_, const_cast<void*>(data), size, NLMSG_ALIGNTO) == 0);
  return *this;
}

nlattr* Message::begin(int attribute) {
  nlattr* const start = nla_nest_start(message_, attribute);
  require(start != nullptr);
  return start;
}

}  // namespace faultline::netlink
