#include "harness/model/model_card.h"

#include <algorithm>
#include <array>

namespace faultline::model {
namespace {

constexpr int kModels = 7;

/// GPT-3: Brown et al. 2020, "Language Models are Few-Shot Learners", table 2.1; all of them were
/// trained with 2048 tokens and GPT-2's 50257 words.
ModelCard gpt3(std::string_view name, int layers, int hidden, int heads) {
  return {.name = std::string(name),
          .family = Family::kGpt,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kvHeads = heads,
          .ffn = 4 * hidden,
          .vocabulary = 50257,
          .sequence = 2048,
          .dtype = DataType::kF16};
}

/// Llama 3.1: Grattafiori et al. 2024, "The Llama 3 Herd of Models", table 3; most of the training
/// used 8192 tokens, before the context was made longer.
ModelCard llama31(std::string_view name, int layers, int hidden, int heads, int ffn) {
  return {.name = std::string(name),
          .family = Family::kLlama,
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kvHeads = 8,
          .ffn = ffn,
          .vocabulary = 128256,
          .sequence = 8192,
          .dtype = DataType::kBf16};
}

/// Mixtral 8x7B: Jiang et al. 2024, "Mixtral of Experts", table 1.
ModelCard mixtral() {
  return {.name = "mixtral-8x7b",
          .family = Family::kLlama,
          .layers = 32,
          .hidden = 4096,
          .heads = 32,
          .kvHeads = 8,
          .ffn = 14336,
          .vocabulary = 32000,
          .sequence = 32768,
          .experts = 8,
          .activeExperts = 2,
          .dtype = DataType::kBf16};
}

const std::array<ModelCard, kModels>& modelCards() {
  static const std::array<ModelCard, kModels> kCards{
      gpt3("gpt3-2.7b", 32, 2560, 32),
      // The table says 5140 for the hidden size, which is not 40 heads of 128; 5120 is.
      gpt3("gpt3-13b", 40, 5120, 40),
      gpt3("gpt3-175b", 96, 12288, 96),
      llama31("llama3.1-8b", 32, 4096, 32, 14336),
      llama31("llama3.1-70b", 80, 8192, 64, 28672),
      llama31("llama3.1-405b", 126, 16384, 128, 53248),
      mixtral(),
  };
  return kCards;
}

/// Matrices of one feed-forward part, each of hidden x ffn.
std::int64_t matrices(const ModelCard& card) { return card.family == Family::kGpt ? 2 : 3; }

/// Parameters of attention's four matrices.
std::int64_t attentionMatrices(const ModelCard& card) {
  const std::int64_t hidden = card.hidden;
  return 2 * hidden * (hidden + hidden * card.kvHeads / card.heads);
}

std::int64_t router(const ModelCard& card) {
  return card.experts > 1 ? std::int64_t{card.hidden} * card.experts : 0;
}

}  // namespace

ParameterCounts countParameters(const ModelCard& card) {
  const std::int64_t hidden = card.hidden;
  const bool gpt = card.family == Family::kGpt;
  ParameterCounts counts;
  counts.attention = attentionMatrices(card);
  counts.expert = matrices(card) * hidden * card.ffn;
  counts.router = router(card);
  counts.embedding = card.vocabulary * hidden;
  if (gpt) {
    counts.attention += 2 * (hidden + hidden * card.kvHeads / card.heads) + 4 * hidden;
    counts.expert += card.ffn + hidden;
    counts.embedding += card.sequence * hidden;
    counts.head = 2 * hidden;
  } else {
    counts.attention += 2 * hidden;
    counts.head = hidden + card.vocabulary * hidden;
  }
  const auto with = [&](int experts) {
    return card.layers * (counts.attention + counts.router + experts * counts.expert) +
           counts.embedding + counts.head;
  };
  counts.total = with(card.experts);
  counts.active = with(card.activeExperts);
  return counts;
}

TokenFlops tokenFlops(const ModelCard& card, int sequence) {
  constexpr double kPerParameter = 2;  // a multiplication and an addition
  const double hidden = card.hidden;
  TokenFlops flops;
  flops.attention =
      kPerParameter * static_cast<double>(attentionMatrices(card)) + 4.0 * sequence * hidden;
  flops.feedForward = kPerParameter * (static_cast<double>(matrices(card)) * hidden * card.ffn *
                                           card.activeExperts +
                                       static_cast<double>(router(card)));
  flops.head = kPerParameter * hidden * card.vocabulary;
  flops.layers = card.layers * (flops.attention + flops.feedForward);
  return flops;
}

std::span<const ModelCard> models() { return modelCards(); }

std::span<const std::string_view> modelNames() {
  static const std::array<std::string_view, kModels> kNames = [] {
    std::array<std::string_view, kModels> names;
    std::ranges::transform(modelCards(), names.begin(), &ModelCard::name);
    return names;
  }();
  return kNames;
}

const ModelCard* findModel(std::string_view name) {
  const auto found = std::ranges::find(modelCards(), name, &ModelCard::name);
  return found == modelCards().end() ? nullptr : &*found;
}

std::string_view name(Family family) { return kFamilyNames[static_cast<std::size_t>(family)]; }

}  // namespace faultline::model
