#pragma once

#include <cstddef>
#include <cstdint>

namespace faultline::fuzz {

/// Feeds bytes to the reader of MSCCL XML and aborts when it breaks a promise: what is read can be
/// written and is read again as the same; an imported schedule is one that the verifier can judge.
/// Returns whether a schedule came of it.
bool mscclReader(const std::uint8_t* data, std::size_t size);

}  // namespace faultline::fuzz
