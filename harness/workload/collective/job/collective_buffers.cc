#include "harness/workload/collective/job/collective_buffers.h"

#include <algorithm>

#include "harness/workload/poison.h"

namespace faultline::workload {
namespace {

using scenario::SweepCell;
using schedule::Collective;

}  // namespace

CollectiveBuffers::CollectiveBuffers(std::span<const SweepCell> cells, int rank, int ranks)
    : rank_(rank), ranks_(ranks) {
  Bytes largest = 0, apart = 0;
  for (const SweepCell& cell : cells) {
    const Bytes bytes = scenario::bytesOf(cell, ranks);
    largest = std::max(largest, bytes);
    if (!cell.inPlace) apart = std::max(apart, bytes);
  }
  result_.resize(wholePoisonWords(largest));
  input_.resize(wholePoisonWords(apart));
}

void CollectiveBuffers::prepare(const SweepCell& cell, const DataKey& key) {
  cell_ = cell;
  count_ = countOf(cell_, ranks_);
  poison(result_.data(), std::ssize(result_));
  const std::int64_t given = input().count;
  if (given > 0) fillIntegers(cell_.dtype, source().data(), given, 0, key, rank_);
}

std::span<std::byte> CollectiveBuffers::source() {
  const Part given = input();
  if (cell_.inPlace) return bytesOf(result_, given);
  return bytesOf(input_, {0, given.count});
}

std::span<std::byte> CollectiveBuffers::target() { return bytesOf(result_, output()); }
std::span<std::byte> CollectiveBuffers::result() { return bytesOf(result_, {0, whole()}); }

void CollectiveBuffers::corrupt(std::uint64_t seed) {
  const Part part = output();
  if (part.count == 0) return;
  corruptOneElement(cell_.dtype, bytesOf(result_, part).data(), part.count, seed);
}

CheckResult CollectiveBuffers::check(const DataKey& key) const {
  CheckResult sum;
  const auto look = [&](const Part& part, std::int64_t firstIndex, const Contributors& from) {
    const std::byte* const first = result_.data() + part.first * reduction::sizeOf(cell_.dtype);
    const CheckResult found = checkIntegers(cell_.dtype, first, part.count, firstIndex, key, from);
    if (sum.wrong == 0 && found.wrong > 0) sum.firstWrong = found.firstWrong;
    sum.wrong += found.wrong;
    sum.checked += found.checked;
  };
  const Contributors all{.firstRank = 0, .ranks = ranks_, .op = cell_.op};
  const auto block = [&](int rank) { return Part{rank * count_, count_}; };
  switch (cell_.operation) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      look(output(), 0, all);
      break;
    case Collective::kReduceScatter:
      look(output(), rank_ * count_, all);
      break;
    case Collective::kBroadcast:
      look(output(), 0, {.firstRank = 0});
      break;
    case Collective::kSendRecv:
      look(output(), 0, {.firstRank = (rank_ + ranks_ - 1) % ranks_});
      break;
    case Collective::kAllGather:
      for (int rank = 0; rank < ranks_; ++rank) look(block(rank), 0, {.firstRank = rank});
      break;
    case Collective::kAllToAll:
      for (int rank = 0; rank < ranks_; ++rank) {
        look(block(rank), rank_ * count_, {.firstRank = rank});
      }
      break;
  }
  return sum;
}

std::int64_t CollectiveBuffers::whole() const {
  return count_ * (schedule::hasBlocks(cell_.operation) ? ranks_ : 1);
}

CollectiveBuffers::Part CollectiveBuffers::input() const {
  if (cell_.operation == Collective::kAllGather) return own();
  if (cell_.operation == Collective::kBroadcast && !isRoot()) return {};
  return {0, whole()};
}

CollectiveBuffers::Part CollectiveBuffers::output() const {
  if (cell_.operation == Collective::kReduceScatter) return own();
  if (cell_.operation == Collective::kReduce && !isRoot()) return {};
  return {0, whole()};
}

std::span<std::byte> CollectiveBuffers::bytesOf(std::vector<std::byte>& buffer,
                                                const Part& part) const {
  const std::int64_t size = reduction::sizeOf(cell_.dtype);
  return {buffer.data() + part.first * size, static_cast<std::size_t>(part.count * size)};
}

}  // namespace faultline::workload
