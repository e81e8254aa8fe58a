#pragma once

#include <cstddef>

namespace faultline::schedule {

/// Ranks, lanes and operations are counted in int; containers want their own type.
inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace faultline::schedule
