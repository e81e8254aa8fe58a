#include "resilient_ccl/auth/sealed_path.h"

#include <cstring>

namespace faultline::auth {

Seal SealedPath::seal(Authenticator& authenticator, std::span<const std::byte> datagram) {
  Seal seal{.number = ++sent_};
  seal.tag = authenticator.tagOf({datagram, std::as_bytes(std::span(&seal.number, 1))});
  return seal;
}

std::optional<std::span<const std::byte>> SealedPath::open(Authenticator& authenticator,
                                                           std::span<const std::byte> sealed) {
  Seal seal;
  if (sealed.size() < sizeof(seal)) return std::nullopt;
  const std::span<const std::byte> datagram = sealed.first(sealed.size() - sizeof(seal));
  std::memcpy(&seal, sealed.data() + datagram.size(), sizeof(seal));
  const auto number = std::as_bytes(std::span(&seal.number, 1));
  // The window moves only for who has the key.
  if (!authenticator.verify({datagram, number}, seal.tag)) return std::nullopt;
  if (!received_.accept(seal.number)) return std::nullopt;
  return datagram;
}

}  // namespace faultline::auth
