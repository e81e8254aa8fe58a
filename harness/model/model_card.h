#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "resilient_ccl/reduction/data_type.h"

namespace faultline::model {

using reduction::DataType;

/// How a layer is built.
enum class Family {
  kGpt,    ///< GELU, biases, LayerNorm, learned positions; input and output embedding are one
  kLlama,  ///< SwiGLU, RMSNorm, no biases, rotary positions; an output matrix of its own
};

/// The architecture of a transformer, as far as sizes and times follow from it.
struct ModelCard {
  std::string name;  ///< of a preset; "custom" otherwise
  Family family = Family::kGpt;
  int layers = 1;
  int hidden = 1;
  int heads = 1;          ///< of attention
  int kvHeads = 1;        ///< heads of keys and values; fewer than `heads`: grouped-query attention
  int ffn = 4;            ///< width of the feed-forward part
  int vocabulary = 1;     ///< tokens
  int sequence = 1;       ///< tokens of one sample, as it was trained
  int experts = 1;        ///< feed-forward parts of each layer; 1: dense
  int activeExperts = 1;  ///< of them, that one token passes through
  DataType dtype = DataType::kBf16;  ///< of parameters, gradients and activations
  bool operator==(const ModelCard&) const = default;
};

/// Parameters, by where they are and how they are divided.
struct ParameterCounts {
  std::int64_t attention = 0;  ///< of one layer, with its norms
  std::int64_t expert = 0;     ///< of one feed-forward part of one layer
  std::int64_t router = 0;     ///< of one layer
  std::int64_t embedding = 0;  ///< of tokens, and of positions where they are learned
  std::int64_t head = 0;       ///< final norm, and the output matrix where it is not the embedding
  std::int64_t total = 0;
  std::int64_t active = 0;  ///< that one token meets
};

/// With h = hidden, f = ffn, V = vocabulary, s = sequence, g = kvHeads / heads:
/// attention 2 h^2 (1 + g), feed-forward 2 h f (GPT) or 3 h f (Llama), router h experts;
/// GPT besides: biases 2 h (1 + g) + f + h, two LayerNorms 4 h, positions s h, final norm 2 h;
/// Llama: two RMSNorms 2 h, final norm h, output matrix V h. Embedding V h. For GPT with f = 4 h
/// that is 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)): Narayanan et al. 2021, "Efficient
/// Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", equation 2.
ParameterCounts countParameters(const ModelCard& card);

/// Floating-point operations of the forward pass for one token; the backward pass takes twice as
/// many (a product for the inputs, one for the weights). A product of a matrix with a vector costs
/// 2 per parameter, and the scores of attention with their values 4 s h. Narayanan et al. 2021,
/// section 5.1 and appendix, without recomputation of activations; norms and biases are left out,
/// and causal attention is counted in full, as there.
struct TokenFlops {
  double attention = 0;    ///< of one layer
  double feedForward = 0;  ///< of one layer, of all experts that the token passes through
  double head = 0;         ///< 2 h V: scores of all words, once
  double layers = 0;       ///< of all layers
  double forward() const { return layers + head; }
  double backward() const { return kBackwardFactor * forward(); }
  static constexpr double kBackwardFactor = 2;
};
TokenFlops tokenFlops(const ModelCard& card, int sequence);

/// The presets' names, in the order of `models`.
std::span<const std::string_view> modelNames();

/// Public architectures, each with its source in model_card.cc.
std::span<const ModelCard> models();
/// Null when there is none of that name.
const ModelCard* findModel(std::string_view name);

std::string_view name(Family family);
inline constexpr std::string_view kFamilyNames[] = {"gpt", "llama"};

}  // namespace faultline::model
