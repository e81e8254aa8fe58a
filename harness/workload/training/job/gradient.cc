#include "harness/workload/training/job/gradient.h"

#include <algorithm>

#include "harness/workload/digest.h"
#include "harness/workload/poison.h"

namespace faultline::workload {
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
      type_(options.dtype),
      elements_(options.size / reduction::sizeOf(type_)),
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

JobCheck Gradient::check(const DataKey& key) const {
  if (data_ == scenario::DataKind::kIntegers) {
    // What was not written is poison, which no sum is.
    const int ranks = left_.empty() ? ranks_ : static_cast<int>(left_.size());
    const CheckResult found =
        checkIntegers(type_, result_.data(), elements_, 0, key, {.ranks = ranks, .list = left_});
    return {.wrong = found.wrong, .checked = found.checked, .digest = ""};
  }
  const std::int64_t size = reduction::sizeOf(type_);
  const auto poisoned = countPoison(result_.data(), static_cast<std::int64_t>(result_.size()));
  Digest digest;
  digest.add(result_.data(), result_.size());
  const std::int64_t bytes = poisoned * static_cast<std::int64_t>(sizeof(kPoisonWord));
  return {.wrong = (bytes + size - 1) / size, .checked = 0, .digest = digest.hex()};
}

void Gradient::step() {
  reduction::reduce(type_, reduction::ReduceOp::kSum, state_.data(), result_.data(), elements_);
}

bool Gradient::restoreState(std::span<const std::byte> state) {
  if (state.size() != state_.size()) return false;
  std::ranges::copy(state, state_.begin());
  return true;
}

}  // namespace faultline::workload
