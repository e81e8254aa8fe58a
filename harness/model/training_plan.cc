#include "harness/model/training_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/model/divide.h"

namespace faultline::model {
namespace {

constexpr double kPasses = 1 + TokenFlops::kBackwardFactor;

/// Seconds of one micro-batch's forward pass through the layers of a stage.
double stageForward(const Training& training, const LayerTimes& times) {
  return training.layersPerStage() * (times.attention + times.feedForward);
}

/// Micro-batches whose activations a stage holds at the same time.
int underWay(const Training& training, int stage) {
  return std::min(training.parallel.pipeline - stage, training.microBatches);
}

}  // namespace

Place placeOf(const Parallel& parallel, int rank) {
  Place place;
  place.tensor = rank % parallel.tensor;
  rank /= parallel.tensor;
  place.expert = rank % parallel.expert;
  rank /= parallel.expert;
  place.data = rank % parallel.data;
  place.stage = rank / parallel.data;
  return place;
}

int rankAt(const Parallel& parallel, const Place& place) {
  return ((place.stage * parallel.data + place.data) * parallel.expert + place.expert) *
             parallel.tensor +
         place.tensor;
}

std::vector<int> membersOf(const Training& training, Group group, int rank) {
  const Parallel& parallel = training.parallel;
  const Place own = placeOf(parallel, rank);
  std::vector<int> members;
  for (int other = 0; other < parallel.ranks(); ++other) {
    const Place place = placeOf(parallel, other);
    const bool tensor = place.tensor == own.tensor;
    const bool expert = place.expert == own.expert;
    const bool data = place.data == own.data;
    const bool stage = place.stage == own.stage;
    bool with = false;
    switch (group) {
      case Group::kCopies:
        with = tensor && stage;
        break;
      case Group::kExpertCopies:
        with = tensor && expert && stage;
        break;
      case Group::kTensor:
        with = expert && data && stage;
        break;
      case Group::kExpert:
        with = tensor && data && stage;
        break;
      case Group::kPipeline:
        with = tensor && expert && data;
        break;
      case Group::kEmbedding:
        with = tensor && expert && data &&
               (other == rank || place.stage == 0 || place.stage == parallel.pipeline - 1);
        break;
    }
    if (with) members.push_back(other);
  }
  return members;
}

StageParameters stageParameters(const Training& training, int stage) {
  const ModelCard& model = training.model;
  const Parallel& parallel = training.parallel;
  const ParameterCounts counts = countParameters(model);
  const std::int64_t layers = training.layersPerStage();
  const std::int64_t experts = layers * model.experts * counts.expert;
  const bool last = stage == parallel.pipeline - 1;
  std::int64_t dense = layers * (counts.attention + counts.router);
  StageParameters parameters;
  if (!training.sharesExperts()) dense += experts;
  if (stage == 0) dense += counts.embedding;
  if (last) dense += counts.head;
  if (model.family == Family::kGpt && parallel.pipeline > 1 && (stage == 0 || last)) {
    const std::int64_t words = std::int64_t{model.vocabulary} * model.hidden;
    if (last) dense += words;
    parameters.tiedEmbedding = divideUp(words, parallel.tensor);
  }
  parameters.dense = divideUp(dense, parallel.tensor);
  if (training.sharesExperts()) {
    parameters.expert = divideUp(experts, std::int64_t{parallel.tensor} * parallel.expert);
  }
  return parameters;
}

Memory memoryOf(const Training& training, int stage) {
  const ModelCard& model = training.model;
  const Parallel& parallel = training.parallel;
  const StageParameters parameters = stageParameters(training, stage);
  const double element = reduction::sizeOf(model.dtype);
  constexpr double kAll = 16;  // of one parameter, with either width of the elements
  const auto perParameter = [&](double copies) {
    const auto held = [&](double bytes, int sharedFrom) {
      return parallel.zero >= sharedFrom ? bytes / copies : bytes;
    };
    return held(element, 3) + held(element, 2) + held(kAll - 2 * element, 1);
  };
  Memory memory;
  memory.states =
      static_cast<double>(parameters.dense) * perParameter(parallel.data * parallel.expert) +
      static_cast<double>(parameters.expert) * perParameter(parallel.data);
  const double hidden = model.hidden;
  const double matrices = model.family == Family::kGpt ? 2 : 3;
  const double ofToken =
      10 * hidden + (8 * hidden + 2 * matrices * model.ffn * model.activeExperts) / parallel.tensor;
  constexpr double kFormulasElement = 2;
  memory.activations = ofToken * element / kFormulasElement * training.layersPerStage() *
                       static_cast<double>(training.tokensPerMicroBatch()) *
                       underWay(training, stage);
  return memory;
}

Memory largestMemory(const Training& training) {
  Memory largest;
  for (int stage = 0; stage < training.parallel.pipeline; ++stage) {
    const Memory memory = memoryOf(training, stage);
    if (memory.total() > largest.total()) largest = memory;
  }
  return largest;
}

LayerTimes layerTimes(const Training& training) {
  const TokenFlops flops = tokenFlops(training.model, training.sequence);
  const double seconds = static_cast<double>(training.tokensPerMicroBatch()) /
                         training.device.flopsPerSecond() / training.parallel.tensor /
                         training.scale;
  return {.attention = flops.attention * seconds,
          .feedForward = flops.feedForward * seconds,
          .head = flops.head * seconds};
}

Duration computeTime(const Training& training) {
  const LayerTimes times = layerTimes(training);
  const double seconds =
      kPasses * training.microBatches * (stageForward(training, times) + times.head);
  return std::chrono::round<Duration>(std::chrono::duration<double>(seconds));
}

double readyFrom(const Training& training) {
  const LayerTimes times = layerTimes(training);
  const double layers = stageForward(training, times);
  const double all = kPasses * training.microBatches * (layers + times.head);
  return 1 - TokenFlops::kBackwardFactor * layers / all;
}

namespace {

/// Collects what is wrong with a training job.
class PlanCheck {
 public:
  PlanCheck(const Training& training, int ranks) : training_(training), ranks_(ranks) {}

  std::vector<PlanMistake> find() {
    checkModel();
    checkParallel();
    if (mistakes_.empty()) checkMemory();
    return std::move(mistakes_);
  }

 private:
  template <typename... Args>
  void fail(std::string key, fmt::format_string<Args...> format, Args&&... args) {
    mistakes_.push_back({std::move(key), fmt::format(format, std::forward<Args>(args)...)});
  }
  /// `by` must divide `whole`.
  void divides(const std::string& key, int by, int whole, std::string_view of) {
    if (whole % by != 0) fail(key, "{} ranks cannot share {} {} equally", by, whole, of);
  }

  void checkModel() {
    const ModelCard& model = training_.model;
    if (model.hidden % model.heads != 0) {
      fail("model", "hidden: {} is not a multiple of the {} heads", model.hidden, model.heads);
    }
    if (model.heads % model.kvHeads != 0) {
      fail("model", "kv_heads: {} heads cannot share {} equally", model.heads, model.kvHeads);
    }
    if (model.activeExperts > model.experts) {
      fail("model", "active_experts: there are only {} experts", model.experts);
    }
    if (model.family == Family::kGpt && training_.sequence > model.sequence) {
      fail("sequence", "sequence: the model has learned only {} positions", model.sequence);
    }
  }

  void checkParallel() {
    const ModelCard& model = training_.model;
    const Parallel& parallel = training_.parallel;
    if (parallel.ranks() != ranks_) {
      fail("parallel",
           "parallel: data {} x tensor {} x pipeline {} x expert {} are {} ranks, and the cluster "
           "has {}",
           parallel.data, parallel.tensor, parallel.pipeline, parallel.expert, parallel.ranks(),
           ranks_);
    }
    divides("parallel.pipeline", parallel.pipeline, model.layers, "layers");
    divides("parallel.tensor", parallel.tensor, model.kvHeads, "heads of keys and values");
    divides("parallel.tensor", parallel.tensor, model.ffn, "columns of the feed-forward part");
    divides("parallel.expert", parallel.expert, model.experts, "experts");
    checkZero();
    if (model.layers % parallel.pipeline == 0 && training_.buckets > training_.layersPerStage()) {
      fail("gradient.buckets", "buckets: {} are more than the {} layers of a stage",
           training_.buckets, training_.layersPerStage());
    }
  }

  void checkZero() {
    const Parallel& parallel = training_.parallel;
    if (parallel.zero == 0) return;
    if (parallel.data * parallel.expert == 1) {
      fail("parallel.zero",
           "zero: {} has no copies among which anything could be shared: give "
           "'data' at least 2",
           parallel.zero);
    } else if (parallel.zero >= 2 && parallel.pipeline > 1) {
      fail("parallel.zero",
           "zero: {} would share gradients that the micro-batches of a pipeline still add to: 0 or "
           "1 with a pipeline",
           parallel.zero);
    }
  }

  void checkMemory() {
    constexpr double kGiga = 1e9;
    const Memory memory = largestMemory(training_);
    const auto has = static_cast<double>(training_.device.memory);
    if (memory.total() <= has) return;
    fail("device",
         "device: a rank needs {:.1f} GB ({:.1f} GB parameters, gradients and optimizer states, "
         "{:.1f} GB activations), {:.1f} GB more than the {:.1f} GB of {}: raise 'tensor', "
         "'pipeline' or 'zero', or lower 'micro_batch' or 'sequence'",
         memory.total() / kGiga, memory.states / kGiga, memory.activations / kGiga,
         (memory.total() - has) / kGiga, has / kGiga, training_.device.name);
  }

  const Training& training_;
  const int ranks_;
  std::vector<PlanMistake> mistakes_;
};

}  // namespace

std::vector<PlanMistake> mistakesOf(const Training& training, int ranks) {
  return PlanCheck(training, ranks).find();
}

}  // namespace faultline::model
