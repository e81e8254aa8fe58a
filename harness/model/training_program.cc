#include "harness/model/training_program.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "harness/model/divide.h"

namespace faultline::model {
namespace {

/// Bucket `index` of `buckets` equal ones ends behind so many elements.
std::int64_t bucketEnd(std::int64_t elements, int buckets, int index) {
  return elements * (index + 1) / buckets;
}

class Builder {
 public:
  Builder(const Training& training, int rank)
      : training_(training),
        parallel_(training.parallel),
        place_(placeOf(training.parallel, rank)),
        times_(layerTimes(training)),
        parameters_(stageParameters(training, place_.stage)),
        tokens_(training.tokensPerMicroBatch()),
        layers_(training.layersPerStage()) {
    sets_[0] = {Group::kCopies, Phase::kParameters, Phase::kGradients, parameters_.dense,
                parallel_.data * parallel_.expert};
    sets_[1] = {Group::kExpertCopies, Phase::kExpertParameters, Phase::kExpertGradients,
                parameters_.expert, parallel_.data};
    placeGradients();
  }

  Program build() {
    if (parallel_.zero == 1 || parallel_.zero == 2) {
      for (int bucket = 0; bucket < training_.buckets; ++bucket) gather(bucket);
    }
    const int micros = training_.microBatches;
    const int warmup = std::min(parallel_.pipeline - 1 - place_.stage, micros);
    for (int micro = 0; micro < warmup; ++micro) forward(micro);
    for (int micro = warmup; micro < micros; ++micro) {
      forward(micro);
      backward(micro - warmup);
    }
    for (int micro = micros - warmup; micro < micros; ++micro) backward(micro);
    reduceEmbedding();
    return std::move(program_);
  }

 private:
  /// Parameters with copies on the same ranks.
  struct Set {
    Group group;
    Phase parameters;
    Phase gradients;
    std::int64_t elements = 0;  // of a stage, before scale
    int copies = 1;
    std::vector<std::int64_t> stateOffsets{};  // by bucket
  };

  bool isFirst() const { return place_.stage == 0; }
  bool isLast() const { return place_.stage == parallel_.pipeline - 1; }

  std::int64_t scaled(std::int64_t elements) const { return divideUp(elements, training_.scale); }

  void compute(double seconds) {
    program_.steps.push_back({.kind = Step::Kind::kCompute, .time = seconds});
  }
  void wait(int call) {
    if (call >= 0) program_.steps.push_back({.kind = Step::Kind::kWait, .call = call});
  }

  /// Begins a call of `whole` elements (before scale) in `blocks` blocks; its number.
  int begin(Phase phase, Operation operation, Group group, std::int64_t whole, int blocks) {
    Call call{.phase = phase, .operation = operation, .group = group, .blocks = blocks};
    call.count = scaled(divideUp(whole, blocks));
    call.realBytes = whole * reduction::sizeOf(training_.model.dtype);
    std::int64_t& offset = offsets_[static_cast<std::size_t>(phase)];
    call.offset = offset;
    offset += call.elements();
    return push(call);
  }
  int push(const Call& call) {
    program_.calls.push_back(call);
    const int number = static_cast<int>(program_.calls.size()) - 1;
    program_.steps.push_back({.kind = Step::Kind::kCall, .call = number});
    return number;
  }

  /// To or from the stage so many further on; the data are numbered by micro-batch, so that both
  /// ends agree.
  int exchange(Phase phase, Operation operation, int stages, int micro) {
    Place place = place_;
    place.stage += stages;
    const std::int64_t elements = tokens_ * training_.model.hidden;
    Call call{.phase = phase, .operation = operation, .group = Group::kPipeline};
    call.count = scaled(elements);
    call.peer = rankAt(parallel_, place);
    call.offset = micro * call.count;
    call.realBytes = elements * reduction::sizeOf(training_.model.dtype);
    return push(call);
  }

  void sumOverTensor(Phase phase) {
    if (parallel_.tensor == 1) return;
    wait(begin(phase, Operation::kAllReduce, Group::kTensor, tokens_ * training_.model.hidden, 1));
  }
  void exchangeTokens(Phase phase) {
    if (!training_.sharesExperts()) return;
    const std::int64_t elements = tokens_ * training_.model.activeExperts * training_.model.hidden;
    wait(begin(phase, Operation::kAllToAll, Group::kExpert, elements, parallel_.expert));
  }

  // Parameters.

  void gather(int bucket) {
    for (Set& set : sets_) {
      const int call = set.copies > 1 && set.elements > 0
                           ? begin(set.parameters, Operation::kAllGather, set.group,
                                   bucketSize(set.elements, bucket), set.copies)
                           : -1;
      gathers_.push_back({bucket, call});
    }
  }
  /// Waits for the parameters of a bucket, in the order in which they were asked for.
  void useParameters(int bucket) {
    while (!gathers_.empty() && gathers_.front().bucket == bucket) {
      wait(gathers_.front().call);
      gathers_.erase(gathers_.begin());
    }
  }
  /// Before layer `layer` of a pass, counted in the order of the pass. Buckets are numbered in that
  /// order as well.
  void beforeLayer(int layer) {
    for (int bucket = 0; bucket < training_.buckets; ++bucket) {
      if (layers_ * bucket / training_.buckets != layer) continue;
      if (parallel_.zero == 3) {
        if (bucket == 0) gather(0);
        if (bucket + 1 < training_.buckets) gather(bucket + 1);
      }
      useParameters(bucket);
    }
  }

  std::int64_t bucketSize(std::int64_t elements, int bucket) const {
    const std::int64_t begin = bucket == 0 ? 0 : bucketEnd(elements, training_.buckets, bucket - 1);
    return bucketEnd(elements, training_.buckets, bucket) - begin;
  }

  // Passes.

  void forward(int micro) {
    if (!isFirst()) {
      wait(exchange(Phase::kActivations, Operation::kReceive, -1, micro));
    }
    for (int layer = 0; layer < layers_; ++layer) {
      beforeLayer(layer);
      compute(times_.attention);
      sumOverTensor(Phase::kTensorForward);
      exchangeTokens(Phase::kExpertForward);
      compute(times_.feedForward);
      exchangeTokens(Phase::kExpertForward);
      sumOverTensor(Phase::kTensorForward);
    }
    if (isLast()) {
      compute(times_.head);
    } else {
      exchange(Phase::kActivations, Operation::kSend, +1, micro);
    }
  }

  void backward(int micro) {
    constexpr double kTwice = TokenFlops::kBackwardFactor;
    if (isLast()) {
      compute(kTwice * times_.head);
    } else {
      wait(exchange(Phase::kActivationGradients, Operation::kReceive, +1, micro));
    }
    const bool reduces = parallel_.zero >= 2 || micro == training_.microBatches - 1;
    for (int layer = 0; layer < layers_; ++layer) {  // the last one first
      if (parallel_.zero == 3) beforeLayer(layer);
      exchangeTokens(Phase::kExpertBackward);
      compute(kTwice * times_.feedForward);
      exchangeTokens(Phase::kExpertBackward);
      sumOverTensor(Phase::kTensorBackward);
      compute(kTwice * times_.attention);
      sumOverTensor(Phase::kTensorBackward);
      if (reduces) reduceBucketsOf(layer);
    }
    if (!isFirst()) exchange(Phase::kActivationGradients, Operation::kSend, -1, micro);
  }

  // Gradients.

  /// Elements of what a rank gets of a bucket's gradient, after scale.
  std::int64_t reducedCount(const Set& set, int bucket) const {
    const std::int64_t whole = bucketSize(set.elements, bucket);
    return scaled(parallel_.zero == 0 ? whole : divideUp(whole, set.copies));
  }
  void placeGradients() {
    for (Set& set : sets_) {
      if (set.copies == 1 || set.elements == 0) continue;
      for (int bucket = 0; bucket < training_.buckets; ++bucket) {
        set.stateOffsets.push_back(program_.stateElements);
        program_.stateElements += reducedCount(set, bucket);
      }
    }
  }
  /// The buckets whose last layer this is.
  void reduceBucketsOf(int layer) {
    for (int bucket = 0; bucket < training_.buckets; ++bucket) {
      if (divideUp(std::int64_t{layers_} * (bucket + 1), training_.buckets) != layer + 1) {
        continue;
      }
      for (const Set& set : sets_) {
        if (set.stateOffsets.empty()) continue;
        const bool whole = parallel_.zero == 0;
        const int call =
            begin(set.gradients, whole ? Operation::kAllReduce : Operation::kReduceScatter,
                  set.group, bucketSize(set.elements, bucket), whole ? 1 : set.copies);
        program_.calls[call].stateOffset = set.stateOffsets[bucket];
      }
    }
  }
  void reduceEmbedding() {
    if (parameters_.tiedEmbedding == 0) return;
    begin(Phase::kEmbeddingGradients, Operation::kAllReduce, Group::kEmbedding,
          parameters_.tiedEmbedding, 1);
  }

  struct Gather {
    int bucket;
    int call;  // -1: there is nothing to gather
  };

  const Training& training_;
  const Parallel& parallel_;
  const Place place_;
  const LayerTimes times_;
  const StageParameters parameters_;
  const std::int64_t tokens_;
  const int layers_;
  std::array<Set, 2> sets_;
  std::array<std::int64_t, kPhases> offsets_{};
  std::vector<Gather> gathers_;  // that were not waited for
  Program program_;
};

}  // namespace

std::int64_t Program::bufferElements() const {
  std::int64_t sum = 0;
  for (const Call& call : calls) {
    const bool oneSide =
        call.operation == Operation::kSend || call.operation == Operation::kReceive;
    const bool bothWhole =
        call.operation == Operation::kAllReduce || call.operation == Operation::kAllToAll;
    sum += call.elements() + (oneSide ? 0 : bothWhole ? call.elements() : call.count);
  }
  return sum;
}

Program programOf(const Training& training, int rank) { return Builder(training, rank).build(); }

}  // namespace faultline::model
