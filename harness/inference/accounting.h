#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/inference/requests.h"
#include "harness/inference/serving.h"

namespace faultline::inference {

/// What became of a request. Times are milliseconds after the start of the run.
struct Served {
  int rate = 0;  ///< which of the run's, from 0
  Request request;
  std::optional<double> arrival;  ///< nothing: its rate had not begun when the run ended
  std::optional<double> first;    ///< its first token was there, for the first time
  std::optional<double> last;     ///< all of its tokens were there
  int begun = 0;                  ///< times that it was begun; more than once: redone
};

/// Every request ends in one of these.
enum class Fate {
  kFinished,  ///< within the objectives
  kLate,      ///< complete, and not within them
  kLost,      ///< never complete
};
inline constexpr std::string_view kFateNames[] = {"finished", "late", "lost"};
inline std::string_view nameOf(Fate fate) { return kFateNames[static_cast<int>(fate)]; }
Fate fateOf(const Served& served, const Objectives& objectives);

/// From arrival to the first token, waiting in the queue included; milliseconds. As vLLM's and
/// DistServe's TTFT.
std::optional<double> ttftOf(const Served& served);
/// Mean time of each further token: (last - first) / (output - 1); of requests of one token there
/// is none. As vLLM's and DistServe's TPOT; moving keys and values is in it.
std::optional<double> tpotOf(const Served& served);
/// From arrival to the last token.
std::optional<double> endToEndOf(const Served& served);

/// Of the requests of a rate.
struct Account {
  int requests = 0;
  int finished = 0;
  /// Share of all that is finished within the objectives; 0 of none.
  double good() const { return requests == 0 ? 0 : static_cast<double>(finished) / requests; }
};

/// Where less than this share of the requests is good, the server does not keep up: the attainment
/// that DistServe demands (section 2).
inline constexpr double kKeepsUp = 0.9;
/// The first of the rates, in their order, at which it does not; -1: it keeps up with all of them.
int kneeOf(std::span<const Account> rates);

}  // namespace faultline::inference
