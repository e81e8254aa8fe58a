#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace faultline::test {

/// Numbered datagrams of one path, from a seed: some are lost, repeated and overtaken, which is no
/// interruption; then a good many in a row are lost, which is one (channel::Arrivals). What is
/// wrong; nothing as a rule.
std::vector<std::string> playArrivals(std::uint64_t seed);

}  // namespace faultline::test
