#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/parameter.h"

/// Baselines that are not executed but computed. Pure functions of stated parameters; docs/
/// baselines.md has the formulas and the sources of all defaults.
namespace faultline::baseline {

/// What a modelled row stands on and comes to.
struct Modelled {
  struct Term {
    std::string_view name;  ///< "detect", ...
    double value = 0;
    std::string_view unit;
    bool operator==(const Term&) const = default;
  };
  /// Extra time per unit of work, in percent, over the time from one fault to the next; nullopt: it
  /// has not caught up by then.
  std::optional<double> overheadPercent;
  std::vector<Term> terms;
  std::string note;  ///< in words, what one must know beyond the terms; empty: nothing
  /// The seconds by which one fault makes a job, or all requests of a server together, longer;
  /// likewise nullopt.
  std::optional<double> faultSeconds{};
  std::optional<double> faultRequests{};  ///< of a server: that take longer
};

/// Names of terms end so that are percentages of the time from one fault to the next, or of all
/// requests in it.
inline constexpr std::string_view kLongerBy = "longer by";

/// One server of a model without a fault, in the real job's times and rates: means over the
/// requests of one rate. harness/analysis/serving_case.h makes it of what was measured.
struct ServingCase {
  double scale = 1;              ///< times that were measured are multiplied by it, rates divided
  double requestsPerSecond = 0;  ///< offered
  double capacity = 0;           ///< requests per second that it can do
  double requests = 0;           ///< of the run that was measured; nothing is computed of it
  double promptTokens = 0;
  double outputTokens = 0;
  double prefillSeconds = 0;     ///< of one request's prompt
  double firstTokenSeconds = 0;  ///< from arrival to the first token (TTFT), the queue included
  double tokenSeconds = 0;       ///< from one output token to the next (TPOT)
  double endToEndSeconds = 0;    ///< from arrival to last token, the queue included
  double kvBytesPerToken = 0;    ///< what one rank has: of its layers, its part
  double bytesPerSecond = 0;     ///< at which replicas of keys and values come back
};

/// What a training job at scale is worth between two faults.
Modelled restartAtScale(const Parameters& options);
/// The server is killed, started again, loads its weights, and does all running requests again.
Modelled restartServer(const ServingCase& serving, const Parameters& options);
/// There are several such servers. Running requests of one go to the others, which do their prompts
/// again; these share the load until it is replaced.
Modelled rerouteRequests(const ServingCase& serving, const Parameters& options);
/// As DejaVu: keys and values are streamed to a neighbour; after a restart of the worker they come
/// back, and generation goes on from the smallest token that all have.
Modelled kvReplicate(const ServingCase& serving, const Parameters& options);

/// Of a strategy that is modelled; nullopt: of none, or it needs a server and `serving` is null.
std::optional<Modelled> modelOf(std::string_view strategy, const ServingCase* serving,
                                const Parameters& options);

/// Extra time of all requests together, in seconds, that a queue without randomness has when
/// nothing is served for `outage` seconds and `redo` seconds of work are added: rate x the area
/// under the backlog, which falls by 1 - load each second, cut off after `left` seconds.
double delayOfAll(double rate, double load, double outage, double redo, double left);

}  // namespace faultline::baseline
