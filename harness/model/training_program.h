#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "harness/model/training_plan.h"

namespace faultline::model {

/// What is communicated, and why.
enum class Phase {
  kParameters,           ///< ZeRO: parameters of other copies, before they are needed
  kExpertParameters,     ///< likewise of shared experts
  kTensorForward,        ///< sums over the parts of a matrix
  kTensorBackward,       ///< likewise of gradients
  kExpertForward,        ///< tokens to their experts, and back
  kExpertBackward,       ///< likewise of gradients
  kActivations,          ///< from one stage to the next
  kActivationGradients,  ///< and back
  kGradients,            ///< summed over the copies
  kExpertGradients,      ///< likewise of shared experts
  kEmbeddingGradients,   ///< of the embedding, which two stages have
};
inline constexpr std::string_view kPhaseNames[] = {
    "parameters",     "expert_parameters", "tensor_forward",     "tensor_backward",
    "expert_forward", "expert_backward",   "activations",        "activation_gradients",
    "gradients",      "expert_gradients",  "embedding_gradients"};
inline constexpr int kPhases = std::size(kPhaseNames);
inline std::string_view nameOf(Phase phase) { return kPhaseNames[static_cast<int>(phase)]; }

enum class Operation { kAllReduce, kReduceScatter, kAllGather, kAllToAll, kSend, kReceive };
inline constexpr std::string_view kOperationNames[] = {"all_reduce", "reduce_scatter", "all_gather",
                                                       "all_to_all", "send",           "receive"};
inline std::string_view nameOf(Operation operation) {
  return kOperationNames[static_cast<int>(operation)];
}

/// One call of one rank.
struct Call {
  Phase phase = Phase::kGradients;
  Operation operation = Operation::kAllReduce;
  Group group = Group::kCopies;
  std::int64_t count = 0;  ///< elements, as comm::Communicator counts them, after `scale`
  int blocks = 1;          ///< of `count`, of the larger of input and output
  int peer = -1;           ///< of kSend and kReceive: its rank in the job
  /// Where the data of this call begin among those of its phase: calls have data of their own, and
  /// all ranks of a call agree on it.
  std::int64_t offset = 0;
  /// Of the last that a rank's gradients are reduced to: where they belong in what it has of the
  /// model; -1: the result is no gradient.
  std::int64_t stateOffset = -1;
  std::int64_t realBytes = 0;  ///< of the larger of input and output, before `scale`
  std::int64_t elements() const { return count * blocks; }
};

/// What a rank does in one iteration, one step after the other.
struct Step {
  enum class Kind {
    kCompute,  ///< for `time`
    kCall,     ///< begins calls[call]
    kWait,     ///< until calls[call] is done
  };
  Kind kind = Kind::kCompute;
  double time = 0;  ///< seconds, after `scale`
  int call = -1;
};

struct Program {
  std::vector<Call> calls;
  std::vector<Step> steps;
  std::int64_t stateElements = 0;
  /// All calls have begun when the steps are over, and some are not waited for: they may last
  /// longer.
  std::int64_t bufferElements() const;  ///< of inputs and results of all calls
};

/// The iteration of one rank, in the order in which training frameworks do it. Pure; the ranks of a
/// stage have programs that differ in their peers only. mistakesOf(training) must be empty.
///
/// - Forward, layer by layer: attention, feed-forward part; after each a tensor AllReduce of
///   tokens x hidden elements, and around the feed-forward part an AllToAll of tokens x active
///   experts x hidden elements, all of them waited for. Backward is the same the other way round,
///   with twice the compute. Every tensor rank exchanges all tokens with its experts, and tokens
///   are spread evenly.
/// - Pipeline: 1F1B (Narayanan et al. 2021, section 2.2.1), tokens x hidden elements from stage to
///   stage; receives are waited for, sends are not.
/// - Gradients: a stage's parameters in `buckets` equal parts, each reduced as soon as its share of
///   the layers has been through the backward pass, while that goes on: AllReduce, and
///   ReduceScatter with ZeRO. Of the last micro-batch alone, or of each with ZeRO 2 and 3, which
///   keep no whole gradient to add to.
/// - ZeRO 1 and 2: the parameters of the copies are gathered at the beginning, bucket by bucket,
/// and
///   the forward pass of the first micro-batch waits for a bucket when it comes to its layers. ZeRO
///   3: they are gathered again for each pass of each micro-batch, one bucket ahead of the one in
///   use.
/// - The gradient of an embedding that first and last stage share is summed by them at the end.
Program programOf(const Training& training, int rank);

}  // namespace faultline::model
