#pragma once

#include <array>
#include <string_view>

/// `failovers[].verdict`: by what a failover was known. The one list of these words: results are
/// written with them, and expectations compared.
namespace faultline::scenario::verdict {

inline constexpr std::string_view kPortEvent = "port_event";  ///< the own port went down
inline constexpr std::string_view kReset = "reset";           ///< of the connection, or its end
inline constexpr std::string_view kProbes = "probes";         ///< unanswered, and later ones were
inline constexpr std::string_view kBackOff = "back_off";      ///< the kernel waits for its timer
inline constexpr std::string_view kToldByPeer = "told_by_peer";
inline constexpr std::string_view kProtocol = "protocol";  ///< the peer made no sense

inline constexpr std::array kAll{kPortEvent, kReset, kProbes, kBackOff, kToldByPeer, kProtocol};

}  // namespace faultline::scenario::verdict
