#pragma once

#include <cstddef>
#include <cstdint>

namespace faultline::fuzz {

/// Feeds bytes to everything that reads files of users and words of programs, and aborts when a
/// promise is broken: a request trace is requests in order or an error that says something; a
/// pattern that is accepted is matched by the linear engine, where there is one; JSON is not deeper
/// than its bound; what is printable commands no terminal.
void inputReaders(const std::uint8_t* data, std::size_t size);

}  // namespace faultline::fuzz
