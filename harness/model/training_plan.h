#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "harness/model/device_card.h"
#include "harness/model/model_card.h"

namespace faultline::model {

/// How a model is divided over the ranks; their number is the product of the first four.
struct Parallel {
  int data = 1;      ///< copies of every expert
  int tensor = 1;    ///< ranks that share every matrix
  int pipeline = 1;  ///< stages, each with its part of the layers
  int expert = 1;    ///< ranks that share the experts of a layer; what is dense has data x expert
                     ///< copies
  /// What the copies share among them (ZeRO): 1: optimizer states, 2: gradients too, 3: parameters
  /// too.
  int zero = 0;
  int ranks() const { return data * tensor * pipeline * expert; }
  bool operator==(const Parallel&) const = default;
};

/// A training job: everything that its sizes and times follow from.
struct Training {
  ModelCard model;
  DeviceCard device;
  Parallel parallel;
  int microBatches = 1;  ///< of each rank and iteration, one after the other
  int microBatch = 1;    ///< samples of one
  int sequence = 1;      ///< tokens of a sample
  int buckets = 1;       ///< parts of a rank's parameters that are communicated on their own
  int scale = 1;         ///< all times and bytes are so many times smaller than the real ones
  bool operator==(const Training&) const = default;

  std::int64_t tokensPerMicroBatch() const { return std::int64_t{microBatch} * sequence; }
  int layersPerStage() const { return model.layers / parallel.pipeline; }
  /// Nothing but copies, each of the whole: any of the ranks can be left out.
  bool onlyCopies() const { return parallel.data == parallel.ranks() && parallel.zero == 0; }
  bool sharesExperts() const { return parallel.expert > 1; }
};

/// Where a rank stands. Neighbours in `tensor` are neighbours in number, so that those who exchange
/// most share a node; then `expert`, `data` and `pipeline`.
struct Place {
  int tensor = 0;
  int expert = 0;
  int data = 0;
  int stage = 0;
  bool operator==(const Place&) const = default;
};
Place placeOf(const Parallel& parallel, int rank);
int rankAt(const Parallel& parallel, const Place& place);

/// Those who communicate with each other.
enum class Group {
  kCopies,        ///< of what is dense
  kExpertCopies,  ///< of the same experts, where they are shared
  kTensor,
  kExpert,
  kPipeline,
  kEmbedding,  ///< first and last stage, which both have the embedding
};
inline constexpr int kGroups = 6;
/// The ranks of this rank's group, in order; itself among them.
std::vector<int> membersOf(const Training& training, Group group, int rank);

/// Parameters that one rank of a stage holds when nothing is shared by ZeRO: a layer's parameters
/// are divided by `tensor`, its experts by `expert` besides; the first stage has the embedding, the
/// last one the output matrix (its own copy of the embedding, where the two are one). Rounded up.
struct StageParameters {
  std::int64_t dense = 0;   ///< with copies on all of Group::kCopies
  std::int64_t expert = 0;  ///< with copies on all of Group::kExpertCopies; 0: they are in `dense`
  std::int64_t tiedEmbedding = 0;  ///< of `dense`, what Group::kEmbedding must keep equal
  std::int64_t total() const { return dense + expert; }
};
StageParameters stageParameters(const Training& training, int stage);

/// Bytes that a rank of a stage needs. Parameters, gradients and optimizer states: 2 + 2 + 12 per
/// parameter for mixed precision with Adam (4 + 4 + 8 with f32), each divided by the number of
/// copies from the ZeRO stage on that shares it: Rajbhandari et al. 2020, "ZeRO: Memory
/// Optimizations Toward Training Trillion Parameter Models", section 3.1. Activations: per token
/// and layer 10 h + (8 h + 2 x matrices x ffn x active experts) / tensor bytes with 16 bits,
/// attention scores recomputed: Korthikanti et al. 2022, "Reducing Activation Recomputation in
/// Large Transformer Models", equation 2 without its last term; of as many micro-batches as 1F1B
/// has under way in that stage.
struct Memory {
  double states = 0;
  double activations = 0;
  double total() const { return states + activations; }
};
Memory memoryOf(const Training& training, int stage);
/// The stage that needs most.
Memory largestMemory(const Training& training);

/// Times of one micro-batch in one layer (or the head) of one rank's share, forward, after `scale`:
/// FLOPs / (device FLOP/s x efficiency) / tensor / scale. Backward takes twice as long.
struct LayerTimes {
  double attention = 0;    ///< seconds
  double feedForward = 0;  ///< seconds
  double head = 0;         ///< seconds; only in the last stage
};
LayerTimes layerTimes(const Training& training);

/// Time that the slowest stage computes in an iteration, after `scale`.
Duration computeTime(const Training& training);

/// Share of a pure data-parallel iteration's compute after which the gradient's buckets become
/// ready, at equal distances: all but the layers' backward pass of the last micro-batch.
double readyFrom(const Training& training);

/// Why it cannot be: the key that is wrong, as a scenario writes it below `workload`, and what is
/// wrong with it. `ranks` are those of the cluster.
struct PlanMistake {
  std::string key;
  std::string message;
};
std::vector<PlanMistake> mistakesOf(const Training& training, int ranks);

}  // namespace faultline::model
