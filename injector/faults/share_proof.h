#pragma once

#include <string>
#include <string_view>

/// What probes say about a fault that strikes a random share of what passes. Pure.
namespace faultline::injector {

/// How many probes it takes to tell this share (0 to 1) from none and from another.
int probesForShare(double share);

/// Of the probes, at most this share is pushed out of full queues on the way by frames of the job.
inline constexpr double kQueueShare = 0.05;

/// What else than the fault makes probes count as struck, or not: shares of the probes.
struct ShareTolerance {
  double fewer = 0;
  double more = 0;
};

/// Whether `struck` of `probes` is what this share makes likely. All (1) and none (0) are not
/// random: all are struck, but for the tolerance; of none it is enough that one is not.
bool fitsShare(double share, int probes, int struck, ShareTolerance tolerance = {});

/// The same where of the probes `unsure` ones were perhaps struck and not counted, or the other way
/// round. Of more than half of the share, or a quarter of the probes, nothing is said.
bool fitsUnsureShare(double share, int probes, int struck, int unsure);

/// "31 % lost (22 to 40 % with 95 % certainty; asked: 30 %)": Wilson's interval of a share. `done`
/// is what was done to those that were struck.
std::string shareInWords(std::string_view done, double share, int sent, int struck);

}  // namespace faultline::injector
