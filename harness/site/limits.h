#pragma once

namespace faultline::site {

/// How large a cluster may be.
struct Limits {
  int nodes = 0;
  int ranksPerNode = 0;
  int rails = 0;  ///< of a node
};

/// Of any kind. What a machine holds is another matter: each job is estimated before it starts.
inline constexpr Limits kMost{.nodes = 64, .ranksPerNode = 64, .rails = 16};

}  // namespace faultline::site
