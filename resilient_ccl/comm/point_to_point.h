#pragma once

#include <memory>

#include "resilient_ccl/comm/program.h"

namespace faultline::comm {

/// One rank's part of a message between two: `kind` is kSend to, or kRecv from, `peer`. Executed as
/// a collective of its own, whose number both ends count per pair and direction.
std::shared_ptr<const Program> pointToPoint(schedule::OpKind kind, int ranks, int peer,
                                            std::int64_t count);

/// The highest bit of a collective's number (Executor: 48 bits).
inline constexpr std::uint64_t kPointToPointBit = std::uint64_t{1} << 47;
/// The number of the index-th message; not one of a collective.
constexpr std::uint64_t pointToPointNumber(std::uint64_t index) { return kPointToPointBit | index; }
constexpr bool isPointToPoint(std::uint64_t number) { return (number & kPointToPointBit) != 0; }

}  // namespace faultline::comm
