#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "harness/inference/requests.h"
#include "harness/model/training_plan.h"

/// A server of a model: what is asked of it, and what its sizes and times follow from. Pure.
namespace faultline::inference {

/// Within these a request is good: the service-level objectives of DistServe (Zhong et al. 2024,
/// section 2), with R2CCL's values by default.
struct Objectives {
  Duration ttft = 5s;
  Duration tpot = 400ms;
  bool operator==(const Objectives&) const = default;
};

/// What the workload `inference` says besides model, device, degrees and scale, which are those of
/// a model::Training whose `data`, `expert` and `zero` say nothing.
struct Serving {
  std::vector<int> qps{1};  ///< one after the other, each with `requests` of its own
  int requests = 60;
  Lengths prompt{.spread = Spread::kFixed, .mean = 512, .cv = 0};
  Lengths output{.spread = Spread::kFixed, .mean = 32, .cv = 0};
  std::string traceFile{};   ///< empty: Poisson arrivals of `qps`
  Arrivals trace{};          ///< what is in it
  std::string traceTold{};   ///< what it was taken for, in words
  int batch = 16;            ///< requests that one step works on, at most
  int prefillTokens = 2048;  ///< of one prefill step, at most; a longer prompt has one of its own
  /// Prefill and decode on ranks of their own: the first half of them, and the second half.
  bool disaggregated = false;
  Objectives objectives{};
  bool operator==(const Serving&) const = default;

  int instances() const { return disaggregated ? 2 : 1; }
  int longestPrompt() const;
  int longestRequest() const;  ///< prompt and output
};

/// The requests of all rates, in their order, in one block of runs: others in each, and of one seed
/// always the same.
std::vector<Arrivals> arrivalsOf(const Serving& serving, std::uint64_t seed, int block);

/// From the first arrival of each rate to its last, all rates together: a run takes longer.
Duration arrivingTime(const std::vector<Arrivals>& rates);

/// Bytes of keys and values of one token in one layer of all ranks: 2 x heads of keys and values x
/// head size x bytes of an element. Times the layers that is the KV cache of Kwon et al. 2023,
/// "Efficient Memory Management for Large Language Model Serving with PagedAttention", section 3.
std::int64_t kvBytes(const model::ModelCard& card);

/// Keys and values of `tokens` that one rank has, in elements, before `scale`: those of its layers,
/// divided among the ranks of a tensor group.
std::int64_t kvElements(const model::Training& job, int tokens);

/// Tokens whose keys and values fit beside the weights of the fullest rank.
std::int64_t kvTokens(const model::Training& job);

/// Times of one step on one rank, after `scale`, in seconds. A layer takes as long as its floating
/// point operations or as reading its weights, keys and values from memory, whatever is longer: the
/// roofline of Williams et al. 2009; for transformers Pope et al. 2022, "Efficiently Scaling
/// Transformer Inference", section 2. Operations as in model::tokenFlops; bandwidth is the data
/// sheet's.
struct StepTimes {
  double layer = 0;
  double head = 0;  ///< scores of all words for one token of each request; only in the last stage
};
/// Of the first pass over these prompts.
StepTimes prefillTimes(const model::Training& job, std::span<const int> prompts);
/// Of one further token of requests that have so many tokens already.
StepTimes decodeTimes(const model::Training& job, std::span<const int> contexts);

/// What cannot be, by the key below `workload` that is wrong. `ranks` are those of the cluster.
std::vector<model::PlanMistake> mistakesOf(const Serving& serving, const model::Training& job,
                                           int ranks);

}  // namespace faultline::inference
