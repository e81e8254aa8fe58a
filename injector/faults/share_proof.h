#pragma once

#include <string>
#include <string_view>

/// What probes say about a fault that strikes a random share of what passes. Pure.
namespace faultline::injector {

/// How many probes it takes to tell this share (0 to 1) from none and from another.
int probesForShare(double share);

/// Whether `struck` of `sent` probes is what this share makes likely. A few may be missing for
/// other reasons, as a full queue on the way is one.
bool fitsShare(double share, int sent, int struck);

/// "31 % lost (22 to 40 % with 95 % certainty; asked: 30 %)": Wilson's interval of a share. `done`
/// is what was done to those that were struck.
std::string shareInWords(std::string_view done, double share, int sent, int struck);

}  // namespace faultline::injector
