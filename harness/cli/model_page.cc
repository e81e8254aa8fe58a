#include "harness/cli/model_page.h"

#include <fmt/format.h>

#include "base/parameter.h"
#include "base/units.h"
#include "harness/model/training_plan.h"
#include "harness/scenario/json.h"

namespace faultline::cli {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMega = 1e6;
constexpr double kStatesBytes = 16;  // of a parameter: model::Memory

double giga(std::int64_t value) { return static_cast<double>(value) / kGiga; }

}  // namespace

std::string modelInWords(const model::ModelCard& card) {
  const model::ParameterCounts counts = model::countParameters(card);
  std::string text =
      fmt::format("{:.4g} billion parameters, {} layers of {}, {}", giga(counts.total), card.layers,
                  card.hidden, reduction::nameOf(card.dtype));
  if (card.experts > 1) {
    text += fmt::format(", {} of {} experts for a token ({:.4g} billion)", card.activeExperts,
                        card.experts, giga(counts.active));
  }
  return text;
}

std::string deviceInWords(const model::DeviceCard& card) {
  return fmt::format("{} GFLOP/s, of which training reaches {:.0f} %, {} at {}/s", card.gflops,
                     card.efficiency * kWholeInPercent, formatSize(card.memory),
                     formatSize(card.memoryBandwidth));
}

std::string modelText(const model::ModelCard& card) {
  const model::ParameterCounts counts = model::countParameters(card);
  const model::TokenFlops flops = model::tokenFlops(card, card.sequence);
  const std::int64_t element = reduction::sizeOf(card.dtype);
  std::string text = card.name + "\n\n" + describeRow("is", modelInWords(card));
  text += describeRow("heads", fmt::format("{}, {} of keys and values", card.heads, card.kvHeads));
  text += describeRow("ffn", fmt::format("{}", card.ffn));
  text += describeRow("words", fmt::format("{}", card.vocabulary));
  text += describeRow("sequence", fmt::format("{} tokens", card.sequence));
  text += "\nparameters, in millions\n";
  const auto millions = [&](std::string_view label, std::int64_t count) {
    text += describeRow(label, fmt::format("{:.3f}", static_cast<double>(count) / kMega));
  };
  millions("attention", counts.attention);
  millions("an expert", counts.expert);
  millions("router", counts.router);
  millions("embedding", counts.embedding);
  millions("head", counts.head);
  text += "\nfor one token, forward; backward takes twice as much\n";
  text += describeRow("attention", fmt::format("{:.4g} GFLOP a layer", flops.attention / kGiga));
  text += describeRow("ffn", fmt::format("{:.4g} GFLOP a layer", flops.feedForward / kGiga));
  text += describeRow("head", fmt::format("{:.4g} GFLOP", flops.head / kGiga));
  text += describeRow("all", fmt::format("{:.4g} GFLOP", flops.forward() / kGiga));
  text += "\nundivided, without scale\n";
  text += describeRow("gradient", fmt::format("{:.4g} GB", giga(counts.total * element)));
  text += describeRow("activations", fmt::format("{:.4g} MB between two layers, of one sample",
                                                 static_cast<double>(card.sequence) * card.hidden *
                                                     static_cast<double>(element) / kMega));
  text += describeRow("memory", fmt::format("{:.4g} GB of parameters, gradients and optimizer "
                                            "states",
                                            kStatesBytes * giga(counts.total)));
  for (const model::DeviceCard& device : model::devices()) {
    const double seconds =
        (flops.forward() + flops.backward()) * card.sequence / device.flopsPerSecond();
    text += describeRow(device.name, fmt::format("{:.4g} s of compute for one sample", seconds));
  }
  return text + "\nformulas and sources: docs/training.md\n";
}

Json modelJson(const model::ModelCard& card) {
  const model::ParameterCounts counts = model::countParameters(card);
  const model::TokenFlops flops = model::tokenFlops(card, card.sequence);
  Json json{{"name", card.name}, {"category", "model"}, {"summary", modelInWords(card)}};
  json.update(scenario::toJson(card));
  json.update({{"parameters", counts.total},
               {"active_parameters", counts.active},
               {"forward_flops_per_token", flops.forward()},
               {"backward_flops_per_token", flops.backward()}});
  return json;
}

std::string deviceText(const model::DeviceCard& card) {
  return card.name + "\n\n" + describeRow("is", deviceInWords(card));
}

Json deviceJson(const model::DeviceCard& card) {
  return {{"name", card.name},
          {"category", "device"},
          {"summary", deviceInWords(card)},
          {"gflops", card.gflops},
          {"efficiency_pct", card.efficiency * kWholeInPercent},
          {"memory_bytes", card.memory},
          {"memory_bandwidth", card.memoryBandwidth}};
}

}  // namespace faultline::cli
