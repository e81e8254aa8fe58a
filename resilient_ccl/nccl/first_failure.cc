#include "resilient_ccl/nccl/first_failure.h"

#include <algorithm>
#include <cstring>

namespace faultline::nccl {
namespace {

constexpr std::size_t kLongest = kFailureTextOfWord * FailureWord::kMostParts;
constexpr std::string_view kCut = "...";

char printable(std::byte byte) {
  const auto letter = static_cast<char>(byte);
  return letter >= ' ' && letter <= '~' ? letter : '?';
}

}  // namespace

void FirstFailure::note(const std::string& why, Kind kind, TimePoint now) {
  const std::lock_guard lock(mutex_);
  const bool better = kind == Kind::kCause && kind_ == Kind::kConsequence;
  if (number_ != 0 && now - when_ < kMemory && !better) return;
  why_ = why;
  kind_ = kind;
  when_ = now;
  number_.store(number_ + 1, std::memory_order_release);
}

FirstFailure::Kept FirstFailure::kept() const {
  const std::lock_guard lock(mutex_);
  return {.number = number_, .why = why_};
}

std::vector<std::vector<std::byte>> wordsOf(const FirstFailure::Kept& failure) {
  std::string text = failure.why;
  if (text.size() > kLongest) text.replace(kLongest - kCut.size(), std::string::npos, kCut);
  const std::size_t parts = (text.size() + kFailureTextOfWord - 1) / kFailureTextOfWord;
  std::vector<std::vector<std::byte>> words;
  for (std::size_t part = 0; part < parts; ++part) {
    const FailureWord head{.number = failure.number,
                           .part = static_cast<std::uint8_t>(part),
                           .parts = static_cast<std::uint8_t>(parts)};
    const auto bytes = std::as_bytes(std::span(&head, 1));
    const auto piece = std::as_bytes(std::span(text)).subspan(part * kFailureTextOfWord);
    std::vector<std::byte>& word = words.emplace_back(bytes.begin(), bytes.end());
    word.insert(
        word.end(), piece.begin(),
        piece.begin() + static_cast<std::ptrdiff_t>(std::min(piece.size(), kFailureTextOfWord)));
  }
  return words;
}

bool HeardFailure::take(std::span<const std::byte> word, TimePoint now) {
  FailureWord head;
  if (word.size() <= sizeof(head) || word.size() > sizeof(head) + kFailureTextOfWord) return false;
  std::memcpy(&head, word.data(), sizeof(head));
  const bool known = head.magic == FailureWord::kMagic && head.part < head.parts &&
                     head.parts <= FailureWord::kMostParts;
  if (!known || head.number < number_) return false;
  if (head.number != number_ || head.parts != count_) {
    number_ = head.number;
    count_ = head.parts;
    parts_ = {};
  }
  std::string& text = parts_[head.part];
  text.clear();
  for (const std::byte byte : word.subspan(sizeof(head))) text += printable(byte);
  const auto end = parts_.begin() + count_;
  if (std::any_of(parts_.begin(), end, [](const std::string& part) { return part.empty(); })) {
    return false;
  }
  why_.clear();
  for (auto one = parts_.begin(); one != end; ++one) why_ += *one;
  when_ = now;
  return true;
}

std::string_view HeardFailure::why(TimePoint now) const {
  return now - when_ < FirstFailure::kMemory ? std::string_view(why_) : std::string_view();
}

}  // namespace faultline::nccl
