#include "harness/workload/inference/job/stage.h"

#include <algorithm>

#include "harness/model/divide.h"
#include "harness/workload/compute.h"
#include "harness/workload/poison.h"

namespace faultline::workload {
namespace {

using reduction::DataType;

/// Data of different messages of a step are far apart.
constexpr int kMessageBits = 44;

}  // namespace

Stage::Stage(const RankConfig& config, int first)
    : config_(config),
      job_(*config.workload.model),
      parallel_(job_.parallel),
      first_(first),
      place_(model::placeOf(parallel_, config.rank - first)),
      type_(job_.model.dtype) {}

Status Stage::join(comm::Communicator& all, comm::Communicator& instance) {
  instance_ = tensor_ = &instance;
  if (parallel_.pipeline == 1) return okStatus();
  // All ranks make a split, also those of the other instance.
  const int color = first_ + place_.stage;
  ASSIGN_OR_RETURN(ownTensor_, all.split(color, config_.rank));
  tensor_ = ownTensor_.get();
  return okStatus();
}

/// Waits until computing is over.
void Stage::computed() {
  const TimePoint present = now();
  if (present > end_) {
    late_ += present - end_;
    end_ = present;
    return;
  }
  computeUntil(end_, /*burn=*/false);
}

Status Stage::await(comm::Work& work) {
  RETURN_IF_ERROR(work.wait());
  end_ = std::max(end_, work.finished());
  return okStatus();
}

void Stage::corrupt(DataType type, void* data, std::int64_t count) {
  if (std::exchange(corrupt_, false)) corruptOneElement(type, data, count, config_.seed);
}

Status Stage::sumOverTensor(std::int64_t index) {
  if (parallel_.tensor == 1) return okStatus();
  const std::int64_t count = model::divideUp(work_.tokens * job_.model.hidden, job_.scale);
  const std::size_t bytes = wholePoisonWords(count * reduction::sizeOf(type_));
  if (input_.size() < bytes) input_.resize(bytes);
  if (result_.size() < bytes) result_.resize(bytes);
  const std::int64_t firstIndex = index * count;
  fillIntegers(type_, input_.data(), count, firstIndex, key(), config_.rank);
  poison(result_.data(), static_cast<std::int64_t>(bytes));
  computed();
  const auto work =
      tensor_->allReduce(input_.data(), result_.data(), count, type_, reduction::ReduceOp::kSum);
  RETURN_IF_ERROR(await(*work));
  corrupt(type_, result_.data(), count);
  const int firstRank = config_.rank - place_.tensor;
  this->count(checkIntegers(type_, result_.data(), count, firstIndex, key(),
                            {.firstRank = firstRank, .ranks = parallel_.tensor}));
  return okStatus();
}

Status Stage::send(Message message, int peer, DataType type, std::int64_t count) {
  const std::size_t bytes = wholePoisonWords(count * reduction::sizeOf(type));
  if (input_.size() < bytes) input_.resize(bytes);
  fillIntegers(type, input_.data(), count, std::int64_t{1} << (kMessageBits + int(message)), key(),
               config_.rank);
  computed();
  return await(*instance_->send(input_.data(), count, type, peer));
}

Status Stage::receive(Message message, int peer, DataType type, std::int64_t count) {
  const std::size_t bytes = wholePoisonWords(count * reduction::sizeOf(type));
  if (result_.size() < bytes) result_.resize(bytes);
  poison(result_.data(), static_cast<std::int64_t>(bytes));
  RETURN_IF_ERROR(await(*instance_->receive(result_.data(), count, type, peer)));
  corrupt(type, result_.data(), count);
  this->count(checkIntegers(type, result_.data(), count,
                            std::int64_t{1} << (kMessageBits + int(message)), key(),
                            {.firstRank = first_ + peer}));
  return okStatus();
}

Duration Stage::computing(const Work& work) const {
  return job_.model.layers * work.layer + work.head;
}

Status Stage::run(const Work& work) {
  work_ = work;
  end_ = now();
  const std::int64_t activations = model::divideUp(work.tokens * job_.model.hidden, job_.scale);
  const auto stageBeside = [&](int stages) {
    model::Place place = place_;
    place.stage += stages;
    return model::rankAt(parallel_, place);
  };
  if (place_.stage > 0) {
    RETURN_IF_ERROR(receive(Message::kActivations, stageBeside(-1), type_, activations));
  }
  // Both halves of a layer are taken as equally long.
  const std::int64_t halves = std::int64_t{2} * job_.layersPerStage();
  for (std::int64_t half = 0; half < halves; ++half) {
    compute(work.layer / 2);
    RETURN_IF_ERROR(sumOverTensor(half));
  }
  if (!isLast()) {
    RETURN_IF_ERROR(send(Message::kActivations, stageBeside(1), type_, activations));
  } else {
    compute(work.head);
    computed();
  }
  // What the next step begins with.
  const model::Place last{.stage = parallel_.pipeline - 1};
  if (parallel_.pipeline == 1 || place_.tensor != 0) return okStatus();
  if (isLast()) return send(Message::kTokens, 0, DataType::kI32, work.requests);
  if (!isFirst()) return okStatus();
  return receive(Message::kTokens, model::rankAt(parallel_, last), DataType::kI32, work.requests);
}

}  // namespace faultline::workload
