#pragma once

#include <cstddef>
#include <cstdint>

namespace faultline::fuzz {

/// Feeds bytes to the reader of scenarios and aborts when it breaks a promise: it answers, with a
/// scenario or with mistakes and never both; messages are one line of UTF-8; a scenario written as
/// JSON is read as the same scenario. Lines that begin with "#set " are overrides.
void scenarioReader(const std::uint8_t* data, std::size_t size);

}  // namespace faultline::fuzz
