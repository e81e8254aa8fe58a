#include "resilient_ccl/nccl/handle.h"

#include <algorithm>
#include <cstring>

namespace faultline::nccl {
namespace {

constexpr std::uint32_t kMagic = 0x434e4c46;  // "FLNC"

struct Wire {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kProtocolVersion;
  std::uint32_t address = 0;
  std::uint32_t port = 0;
  std::array<std::byte, 16> process{};
  std::array<std::byte, 16> token{};
  std::uint64_t listener = 0;
  std::array<char, Handle::kLongestName + 1> name{};  // ends with a zero
  std::uint64_t node = 0;
};
// The last eight bytes are the receiver's, see Plugin::connect.
static_assert(sizeof(Wire) == 120 && sizeof(Wire) <= kNetHandleBytes - sizeof(std::uint64_t));

}  // namespace

void Handle::write(std::span<std::byte, kNetHandleBytes> to) const {
  Wire wire{.address = rendezvous.address,
            .port = rendezvous.port,
            .process = process.bytes,
            .token = token.bytes(),
            .listener = listener,
            .name = {},
            .node = node};
  name.copy(wire.name.data(), kLongestName);
  std::ranges::fill(to, std::byte{0});
  std::memcpy(to.data(), &wire, sizeof(wire));
}

Result<Handle> Handle::read(std::span<const std::byte, kNetHandleBytes> from) {
  Wire wire;
  std::memcpy(&wire, from.data(), sizeof(wire));
  if (wire.magic != kMagic) {
    return errorf(Code::kInvalidArgument,
                  "the peer's handle is not Faultline's: all ranks need NCCL_NET_PLUGIN=faultline");
  }
  if (wire.version != kProtocolVersion) {
    return errorf(Code::kInvalidArgument,
                  "the peer's Faultline plugin speaks version {}, this one {}: install the same",
                  wire.version, kProtocolVersion);
  }
  Handle handle;
  handle.rendezvous.address = wire.address;
  handle.rendezvous.port = static_cast<std::uint16_t>(wire.port);
  handle.process.bytes = wire.process;
  handle.token = auth::JobKey(wire.token);
  handle.listener = wire.listener;
  wire.name.back() = '\0';
  handle.name = wire.name.data();
  handle.node = wire.node;
  return handle;
}

std::string nameOfProcess(std::string_view host, int process, std::string_view address) {
  constexpr std::string_view kDots = "..";
  const std::string rest = fmt::format(":{} ({})", process, address);
  const std::size_t room = Handle::kLongestName - std::min(rest.size(), Handle::kLongestName);
  if (host.size() <= room || room <= kDots.size()) return std::string(host.substr(0, room)) + rest;
  const std::size_t begin = (room - kDots.size()) / 2, end = room - kDots.size() - begin;
  return fmt::format("{}{}{}{}", host.substr(0, begin), kDots, host.substr(host.size() - end),
                     rest);
}

}  // namespace faultline::nccl
