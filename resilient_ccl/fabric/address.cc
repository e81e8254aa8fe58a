#include <cstring>

#include "resilient_ccl/fabric/fabric.h"

namespace faultline::fabric {

std::string ProcessAddress::serialize() const {
  std::string bytes;
  const auto addText = [&](const std::string& text) {
    bytes.push_back(static_cast<char>(text.size()));
    bytes += text;
  };
  const auto add = [&](const Endpoint& endpoint) {
    bytes.append(reinterpret_cast<const char*>(&endpoint.address), sizeof(endpoint.address));
    bytes.append(reinterpret_cast<const char*>(&endpoint.port), sizeof(endpoint.port));
  };
  addText(host);
  addText(local);
  add(management);
  for (const Rail& rail : rails) {
    add(rail.data);
    add(rail.control);
  }
  return bytes;
}

Result<ProcessAddress> ProcessAddress::parse(const std::string& bytes) {
  constexpr std::size_t kEndpoint = sizeof(std::uint32_t) + sizeof(std::uint16_t);
  std::size_t at = 0;
  const auto nextText = [&] {
    if (at >= bytes.size()) return std::string();
    const std::size_t length = static_cast<unsigned char>(bytes[at]);
    const std::string text = bytes.substr(at + 1, length);
    at += 1 + length;
    return text;
  };
  const auto next = [&] {
    Endpoint endpoint;
    std::memcpy(&endpoint.address, bytes.data() + at, sizeof(endpoint.address));
    std::memcpy(&endpoint.port, bytes.data() + at + sizeof(endpoint.address),
                sizeof(endpoint.port));
    at += kEndpoint;
    return endpoint;
  };
  ProcessAddress address;
  address.host = nextText();
  address.local = nextText();
  const std::size_t endpoints = at < bytes.size() ? (bytes.size() - at) / kEndpoint : 0;
  if (endpoints % 2 != 1 || at + endpoints * kEndpoint != bytes.size()) {
    return errorf(Code::kInvalidArgument, "{} bytes are not a process address", bytes.size());
  }
  address.management = next();
  while (at < bytes.size()) {
    const Endpoint data = next();
    const Endpoint control = next();
    address.rails.push_back({data, control});
  }
  return address;
}

}  // namespace faultline::fabric
