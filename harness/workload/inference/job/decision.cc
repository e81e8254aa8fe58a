#include "harness/workload/inference/job/decision.h"

#include <cstddef>

#include "base/random.h"

namespace faultline::workload {
namespace {

enum Word : std::size_t {
  kKind,
  kNumber,
  kTokens,
  kRequests,
  kLayer,
  kHead,
  kAccept,
  kArrived,
  kEnds,
  kFirstEnd,
};

std::int64_t digestOf(const std::vector<std::int64_t>& words) {
  std::uint64_t digest = 0;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    digest = Random::mix(digest ^ static_cast<std::uint64_t>(words[i]));
  }
  return static_cast<std::int64_t>(digest);
}

}  // namespace

std::size_t wordsOf(int batch) { return kFirstEnd + static_cast<std::size_t>(batch) + 1; }

std::vector<std::int64_t> encode(const Decision& decision, int batch) {
  std::vector<std::int64_t> words(wordsOf(batch));
  words[kKind] = static_cast<std::int64_t>(decision.kind);
  words[kNumber] = static_cast<std::int64_t>(decision.work.number);
  words[kTokens] = decision.work.tokens;
  words[kRequests] = decision.work.requests;
  words[kLayer] = decision.work.layer.count();
  words[kHead] = decision.work.head.count();
  words[kAccept] = decision.accept;
  words[kArrived] = decision.arrived;
  words[kEnds] = std::ssize(decision.ends);
  for (std::size_t i = 0; i < decision.ends.size(); ++i) words[kFirstEnd + i] = decision.ends[i];
  words.back() = digestOf(words);
  return words;
}

std::optional<Decision> decode(const std::vector<std::int64_t>& words) {
  if (words.size() <= kFirstEnd || words.back() != digestOf(words)) return std::nullopt;
  const auto ends = static_cast<std::size_t>(words[kEnds]);
  if (ends > words.size() - kFirstEnd - 1) return std::nullopt;
  Decision decision;
  decision.kind = static_cast<Decision::Kind>(words[kKind]);
  decision.work = {.number = static_cast<std::uint64_t>(words[kNumber]),
                   .tokens = words[kTokens],
                   .requests = words[kRequests],
                   .layer = Duration(words[kLayer]),
                   .head = Duration(words[kHead])};
  decision.accept = static_cast<int>(words[kAccept]);
  decision.arrived = static_cast<int>(words[kArrived]);
  for (std::size_t i = 0; i < ends; ++i) {
    decision.ends.push_back(static_cast<int>(words[kFirstEnd + i]));
  }
  return decision;
}

}  // namespace faultline::workload
