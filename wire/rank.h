#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json_fields.h"
#include "base/units.h"
#include "wire/message.h"
#include "wire/network.h"

/// Between the controller and a rank, after the rank's configuration. Moments are those of the
/// monotonic clock, ranks those of the whole job.
namespace faultline::wire {

/// What a rank holds, and has spent since the run's t = 0.
struct Resources {
  Bytes memoryStart = 0, memoryEnd = 0, memoryMax = 0;
  int filesStart = 0, filesEnd = 0, filesMax = 0;
  Duration cpu{};
  std::int64_t systemCalls = 0;
  Bytes sent = 0;
};

/// What was compared with the values that it must have.
struct Checked {
  static constexpr const char* kType = "checked";
  std::int64_t wrong = 0;
  std::int64_t checked = 0;  ///< elements
};

/// All ranks have met.
struct Joined {
  static constexpr const char* kType = "joined";
  int firstIteration = 0;  ///< after a checkpoint: where they go on
};

/// Warm-up is over on all ranks; the rank waits for Start.
struct Ready {
  static constexpr const char* kType = "ready";
};

/// An iteration begins, or the prefill of a request.
struct Begin {
  static constexpr const char* kType = "begin";
  int iteration = 0;
  bool warmup = false;
  TimePoint at{};
};

/// An iteration is over on this rank, or its part of a request.
struct End {
  static constexpr const char* kType = "end";
  int iteration = 0;
  bool warmup = false;
  TimePoint at{};
  Duration took{};
  std::int64_t wrong = 0;
  std::int64_t checked = 0;
  std::string digest{};                       ///< of random data
  std::map<std::string, Duration> exposed{};  ///< computing stood still, by model::kPhaseNames
  Duration checkpoint{};                      ///< writing it took; 0: none was due
  Duration late{};                            ///< a server's steps ended later than they were to
  std::optional<TimePoint> last{};            ///< the request's last token
  std::optional<Network> network{};           ///< from the run's t = 0 on
  std::optional<Resources> resources{};
};

/// In the middle of an iteration that takes long.
struct Events {
  static constexpr const char* kType = "events";
  Network network{};
};

/// The rank leaves: these rails of it are dead.
struct Excluded {
  static constexpr const char* kType = "excluded";
  TimePoint at{};
  std::vector<int> rails{};
  Network network{};
};

/// The ranks that are left go on, with this iteration.
struct Shrunk {
  static constexpr const char* kType = "shrunk";
  TimePoint noticed{};
  TimePoint at{};
  std::vector<int> ranks{};
  int iteration = 0;
  Network network{};
};

/// The rank has done its work.
struct Done {
  static constexpr const char* kType = "done";
  std::string stateDigest{};  ///< the same on all ranks
  Network network{};
};

/// The rank cannot go on, and ends; after Done: it could not take leave of the others.
struct Error {
  static constexpr const char* kType = "error";
  Code code = Code::kInternal;
  std::string message{};
  std::optional<Network> network{};
};

// Of a server (workload `inference`).

/// The requests of a rate begin to come.
struct Rate {
  static constexpr const char* kType = "rate";
  int rate = 0;  ///< its number
  TimePoint at{};
};

/// Requests have their first token.
struct Token {
  static constexpr const char* kType = "token";
  std::vector<int> requests{};
  TimePoint at{};
};

/// One step is done.
struct Step {
  static constexpr const char* kType = "step";
};

/// All requests of a rate are served.
struct Served {
  static constexpr const char* kType = "served";
  std::int64_t wrong = 0;
  std::int64_t checked = 0;
  Duration late{};
  std::optional<Network> network{};
  std::optional<Resources> resources{};
};

/// It waits for nobody, but will say nothing while it computes.
struct Alive {
  static constexpr const char* kType = "alive";
  Duration computes{};
};

using FromRank = std::variant<Joined, Ready, Begin, End, Checked, Events, Excluded, Shrunk, Done,
                              Error, Rate, Token, Step, Served, Alive, Gone>;

/// All ranks are ready: t = 0 of the run.
struct Start {
  static constexpr const char* kType = "start";
};

/// All ranks end in order, before the same iteration.
struct Stop {
  static constexpr const char* kType = "stop";
};

using ToRank = std::variant<Start, Stop>;

// --- fields ---

/// Calls of a sweep are counted through, and requests of a server are iterations.
inline constexpr NumberRange kOfIterations{.least = 0, .indexOf = "iterations"};
inline constexpr NumberRange kOfRequests{.least = 0, .indexOf = "requests"};
inline constexpr NumberRange kOfRates{.least = 0, .indexOf = "rates"};

template <typename V>
void visitFields(V& v, Of<Resources> auto& use) {
  v.required("memory_start", use.memoryStart, kNotNegative);
  v.required("memory_end", use.memoryEnd, kNotNegative);
  v.required("memory_max", use.memoryMax, kNotNegative);
  v.required("files_start", use.filesStart, kNotNegative);
  v.required("files_end", use.filesEnd, kNotNegative);
  v.required("files_max", use.filesMax, kNotNegative);
  v.required("cpu", use.cpu, kNotNegative);
  v.required("system_calls", use.systemCalls, kNotNegative);
  v.required("sent", use.sent, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<Checked> auto& message) {
  v.required("wrong", message.wrong, kNotNegative);
  v.required("checked", message.checked, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<Joined> auto& message) {
  v.required("first_iteration", message.firstIteration, kNotNegative);
}

template <typename V>
void visitFields(V& /*v*/, Of<Ready> auto& /*message*/) {}

template <typename V>
void visitFields(V& v, Of<Begin> auto& message) {
  v.required("iteration", message.iteration, kOfIterations);
  v.required("warmup", message.warmup);
  v.required("at", message.at, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<End> auto& message) {
  v.required("iteration", message.iteration, kOfIterations);
  v.required("warmup", message.warmup);
  v.required("at", message.at, kNotNegative);
  v.required("took", message.took, kNotNegative);
  v.required("wrong", message.wrong, kNotNegative);
  v.required("checked", message.checked, kNotNegative);
  v.required("digest", message.digest);
  v.required("exposed", message.exposed, kNotNegative);
  v.required("checkpoint", message.checkpoint, kNotNegative);
  v.required("late", message.late, kNotNegative);
  v.required("last", message.last, kNotNegative);
  v.required("network", message.network);
  v.required("resources", message.resources);
}

template <typename V>
void visitFields(V& v, Of<Events> auto& message) {
  v.required("network", message.network);
}

template <typename V>
void visitFields(V& v, Of<Excluded> auto& message) {
  v.required("at", message.at, kNotNegative);
  v.required("rails", message.rails, kOfRails);
  v.required("network", message.network);
}

template <typename V>
void visitFields(V& v, Of<Shrunk> auto& message) {
  v.required("noticed", message.noticed, kNotNegative);
  v.required("at", message.at, kNotNegative);
  v.required("ranks", message.ranks, kOfRanks);
  v.required("iteration", message.iteration, kNotNegative);
  v.required("network", message.network);
}

template <typename V>
void visitFields(V& v, Of<Done> auto& message) {
  v.required("state_digest", message.stateDigest);
  v.required("network", message.network);
}

template <typename V>
void visitFields(V& v, Of<Error> auto& message) {
  v.required("code", message.code);
  v.required("message", message.message);
  v.required("network", message.network);
}

/// Of an error.
Status checkFields(const Error& error);

template <typename V>
void visitFields(V& v, Of<Rate> auto& message) {
  v.required("rate", message.rate, kOfRates);
  v.required("at", message.at, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<Token> auto& message) {
  v.required("requests", message.requests, kOfRequests);
  v.required("at", message.at, kNotNegative);
}

template <typename V>
void visitFields(V& /*v*/, Of<Step> auto& /*message*/) {}

template <typename V>
void visitFields(V& v, Of<Served> auto& message) {
  v.required("wrong", message.wrong, kNotNegative);
  v.required("checked", message.checked, kNotNegative);
  v.required("late", message.late, kNotNegative);
  v.required("network", message.network);
  v.required("resources", message.resources);
}

template <typename V>
void visitFields(V& v, Of<Alive> auto& message) {
  v.required("computes", message.computes, kNotNegative);
}

template <typename V>
void visitFields(V& /*v*/, Of<Start> auto& /*message*/) {}

template <typename V>
void visitFields(V& /*v*/, Of<Stop> auto& /*message*/) {}

}  // namespace faultline::wire
