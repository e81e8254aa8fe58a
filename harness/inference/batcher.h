#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "harness/inference/requests.h"

namespace faultline::inference {

/// Continuous batching: after every step it is decided anew who takes part in the next one (Yu et
/// al. 2022, "Orca", section 3.1), so that nobody waits for the longest of a batch. Who waits is
/// served before those under way get their next token, as vLLM does by default without chunked
/// prefill (Kwon et al. 2023). No clock: it is told of arrivals and of the ends of steps.
class Batcher {
 public:
  /// What the ranks under it do.
  enum class Role {
    kBoth,     ///< prefill and decode
    kPrefill,  ///< only the first token; then the request is somebody else's
    kDecode,   ///< all but the first token
  };
  struct Limits {
    int batch = 1;              ///< requests under way at the same time
    int prefillTokens = 1;      ///< of one step; a longer prompt has a step of its own
    std::int64_t kvTokens = 1;  ///< whose keys and values fit; a request needs room for all of its
                                ///< tokens before it begins, so that none is ever thrown out
  };
  struct Step {
    enum class Kind { kNone, kPrefill, kDecode };
    Kind kind = Kind::kNone;
    std::vector<int> ids;
    std::vector<int> tokens;  ///< of each: its prompt, or how many tokens it has so far
    std::vector<int> ends;    ///< of `ids`: those that are over with this step
  };

  Batcher(Role role, const Limits& limits) : role_(role), limits_(limits) {}

  /// Whether there is room for it now.
  bool hasRoomFor(const Request& request) const;
  /// Role::kDecode: the keys and values of a request for which there is room are on their way.
  void expect(const Request& request);
  /// A request has come. Of Role::kDecode: its keys and values, which were expected.
  void arrive(const Request& request);
  /// What is to be done next; kNone: nothing, until somebody arrives. Each step is over before the
  /// next one is asked for.
  Step next();

  int waiting() const { return static_cast<int>(waiting_.size()); }
  int running() const { return static_cast<int>(running_.size()); }

 private:
  struct Running {
    Request request;
    int generated = 1;
  };
  static std::int64_t tokensOf(const Request& request) {
    return std::int64_t{request.prompt} + request.output;
  }
  Step prefill();
  Step decode();

  const Role role_;
  const Limits limits_;
  std::deque<Request> waiting_;
  std::vector<Running> running_;
  int expected_ = 0;     // on their way
  std::int64_t kv_ = 0;  // tokens that are spoken for
};

}  // namespace faultline::inference
