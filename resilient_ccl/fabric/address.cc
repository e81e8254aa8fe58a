#include <cstring>

#include "resilient_ccl/fabric/fabric.h"

namespace faultline::fabric {

std::string ProcessAddress::serialize() const {
  std::string bytes;
  const auto add = [&](const Endpoint& endpoint) {
    bytes.append(reinterpret_cast<const char*>(&endpoint.address), sizeof(endpoint.address));
    bytes.append(reinterpret_cast<const char*>(&endpoint.port), sizeof(endpoint.port));
  };
  add(management);
  for (const Rail& rail : rails) {
    add(rail.data);
    add(rail.control);
  }
  return bytes;
}

Result<ProcessAddress> ProcessAddress::parse(const std::string& bytes) {
  constexpr std::size_t kEndpoint = sizeof(std::uint32_t) + sizeof(std::uint16_t);
  if (bytes.size() < kEndpoint || (bytes.size() / kEndpoint) % 2 != 1 ||
      bytes.size() % kEndpoint != 0) {
    return errorf(Code::kInvalidArgument, "{} bytes are not a process address", bytes.size());
  }
  std::size_t at = 0;
  const auto next = [&] {
    Endpoint endpoint;
    std::memcpy(&endpoint.address, bytes.data() + at, sizeof(endpoint.address));
    std::memcpy(&endpoint.port, bytes.data() + at + sizeof(endpoint.address),
                sizeof(endpoint.port));
    at += kEndpoint;
    return endpoint;
  };
  ProcessAddress address;
  address.management = next();
  while (at < bytes.size()) {
    const Endpoint data = next();
    const Endpoint control = next();
    address.rails.push_back({data, control});
  }
  return address;
}

}  // namespace faultline::fabric
