#include "harness/workload/gradient.h"

#include <algorithm>

#include "harness/workload/digest.h"
#include "harness/workload/poison.h"

namespace faultline::workload {
namespace {

comm::DataType typeOf(scenario::DataType type) {
  switch (type) {
    case scenario::DataType::kF32:
      return comm::DataType::kF32;
    case scenario::DataType::kF64:
      return comm::DataType::kF64;
    case scenario::DataType::kI32:
      return comm::DataType::kI32;
    case scenario::DataType::kI64:
      return comm::DataType::kI64;
  }
  return comm::DataType::kF32;
}

}  // namespace

Bucket bucketOf(std::int64_t elements, int buckets, int index) {
  // The first `larger` buckets have one element more.
  const std::int64_t smallest = elements / buckets;
  const std::int64_t larger = elements % buckets;
  return {.first = smallest * index + std::min<std::int64_t>(index, larger),
          .count = smallest + (index < larger ? 1 : 0)};
}

Gradient::Gradient(const scenario::Gradient& options, int rank, int ranks)
    : rank_(rank),
      ranks_(ranks),
      data_(options.data),
      type_(typeOf(options.dtype)),
      elements_(options.size / comm::sizeOf(type_)),
      contribution_(options.size),
      result_(options.size),
      state_(options.size) {}

void Gradient::prepare(const DataKey& key) {
  const auto fill = data_ == scenario::DataKind::kIntegers ? fillIntegers : fillRandom;
  fill(type_, contribution_.data(), elements_, 0, key, rank_);
  poison(result_.data(), static_cast<std::int64_t>(result_.size()));
}

void Gradient::corruptResult(std::uint64_t seed) {
  if (elements_ > 0) corruptOneElement(type_, result_.data(), elements_, seed);
}

GradientCheck Gradient::check(const DataKey& key) const {
  if (data_ == scenario::DataKind::kIntegers) {
    // What was not written is poison, which no sum is.
    const CheckResult found = checkIntegerSum(type_, result_.data(), elements_, 0, key, ranks_);
    return {.wrong = found.wrong, .checked = found.checked, .digest = ""};
  }
  const std::int64_t words = comm::sizeOf(type_) / static_cast<std::int64_t>(sizeof(kPoisonWord));
  const auto poisoned = countPoison(result_.data(), static_cast<std::int64_t>(result_.size()));
  Digest digest;
  digest.add(result_.data(), result_.size());
  return {.wrong = (poisoned + words - 1) / words, .checked = 0, .digest = digest.hex()};
}

void Gradient::step() {
  comm::reduce(type_, comm::ReduceOp::kSum, state_.data(), result_.data(), elements_);
}

bool Gradient::restoreState(std::span<const std::byte> state) {
  if (state.size() != state_.size()) return false;
  std::ranges::copy(state, state_.begin());
  return true;
}

}  // namespace faultline::workload
