#include <cstring>

#include "resilient_ccl/fabric/fabric.h"

namespace faultline::fabric {

std::string ProcessAddress::serialize() const {
  std::string bytes;
  const auto add = [&](const Endpoint& endpoint) {
    bytes.append(reinterpret_cast<const char*>(&endpoint.address), sizeof(endpoint.address));
    bytes.append(reinterpret_cast<const char*>(&endpoint.port), sizeof(endpoint.port));
  };
  bytes.push_back(static_cast<char>(host.size()));
  bytes += host;
  add(management);
  for (const Rail& rail : rails) {
    add(rail.data);
    add(rail.control);
  }
  return bytes;
}

Result<ProcessAddress> ProcessAddress::parse(const std::string& bytes) {
  constexpr std::size_t kEndpoint = sizeof(std::uint32_t) + sizeof(std::uint16_t);
  std::size_t at = bytes.empty() ? 1 : 1 + static_cast<unsigned char>(bytes.front());
  const std::size_t endpoints = at < bytes.size() ? (bytes.size() - at) / kEndpoint : 0;
  if (endpoints % 2 != 1 || at + endpoints * kEndpoint != bytes.size()) {
    return errorf(Code::kInvalidArgument, "{} bytes are not a process address", bytes.size());
  }
  const auto next = [&] {
    Endpoint endpoint;
    std::memcpy(&endpoint.address, bytes.data() + at, sizeof(endpoint.address));
    std::memcpy(&endpoint.port, bytes.data() + at + sizeof(endpoint.address),
                sizeof(endpoint.port));
    at += kEndpoint;
    return endpoint;
  };
  ProcessAddress address;
  address.host = bytes.substr(1, at - 1);
  address.management = next();
  while (at < bytes.size()) {
    const Endpoint data = next();
    const Endpoint control = next();
    address.rails.push_back({data, control});
  }
  return address;
}

}  // namespace faultline::fabric
