#pragma once

#include <cstddef>
#include <cstdint>

namespace faultline::fuzz {

/// Feeds bytes to the readers of what the NCCL plugin hears at its rendezvous port (a greeting, an
/// answer) and aborts when one breaks a promise: what is refused is told why, and what is read is
/// written as the same bytes. Returns whether it is one of the two.
bool greetingReader(const std::uint8_t* data, std::size_t size);

}  // namespace faultline::fuzz
