#pragma once

#include <cstddef>
#include <cstdint>

namespace faultline::fuzz {

/// Feeds bytes to the readers of all that processes of the bench say to each other (docs/wire.md),
/// and aborts when one breaks a promise: what is refused is told why, and what is read is the same
/// once it was written and read again. Returns how many of them take it.
int messageReader(const std::uint8_t* data, std::size_t size);

}  // namespace faultline::fuzz
