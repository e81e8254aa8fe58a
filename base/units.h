#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace faultline {

/// The whole of something, in percent.
inline constexpr double kWholeInPercent = 100;

using Bytes = std::int64_t;
/// Bits per second, as network equipment counts them: 1 Mbit = 10^6 bit.
using BitsPerSecond = std::int64_t;

/// "50ms", "2s", "1.5s", "250us", "10min", "1h" -> duration. A bare number is an error: the unit
/// is part of the value.
Result<Duration> parseDuration(std::string_view text);

/// "64MiB", "4KiB", "1GB", "512B" -> bytes. KiB, MiB, GiB are powers of 1024; kB, MB, GB of 1000.
Result<Bytes> parseSize(std::string_view text);

/// "400Mbit", "1Gbit", "64kbit" -> bits per second (powers of 1000).
Result<BitsPerSecond> parseRate(std::string_view text);

/// The shortest exact spelling that the parsers above read back: "1500ms", "4MiB", "400Mbit".
std::string formatDuration(Duration duration);
std::string formatSize(Bytes bytes);
std::string formatRate(BitsPerSecond rate);

/// A measured time for people, rounded: "1000.000 s", "-20.016 ms", "7.798 us".
std::string approximately(Duration duration);

}  // namespace faultline
