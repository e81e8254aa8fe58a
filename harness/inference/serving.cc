#include "harness/inference/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "harness/model/divide.h"

namespace faultline::inference {
namespace {

constexpr double kGiga = 1e9;

double elementBytes(const model::Training& job) { return reduction::sizeOf(job.model.dtype); }

/// Bytes of weights that `tokens` meet in one layer of one rank: of experts only those that are
/// chosen, which are different ones for different tokens.
double layerWeightBytes(const model::Training& job, std::int64_t tokens) {
  const model::ModelCard& card = job.model;
  const model::ParameterCounts counts = model::countParameters(card);
  const std::int64_t experts = std::min<std::int64_t>(card.experts, tokens * card.activeExperts);
  const auto parameters =
      static_cast<double>(counts.attention + counts.router + experts * counts.expert);
  return parameters * elementBytes(job) / job.parallel.tensor;
}

double secondsOf(const model::Training& job, double flops, double bytes) {
  const double computing = flops / job.device.flopsPerSecond() / job.parallel.tensor;
  const double reading = bytes / static_cast<double>(job.device.memoryBandwidth);
  return std::max(computing, reading) / job.scale;
}

double headSeconds(const model::Training& job, std::size_t requests) {
  const double words = static_cast<double>(job.model.vocabulary) * job.model.hidden;
  constexpr double kFlopsOfWeight = 2;
  return secondsOf(job, kFlopsOfWeight * words * static_cast<double>(requests),
                   words * elementBytes(job) / job.parallel.tensor);
}

/// Floating-point operations of one layer for a token that looks back at so many.
double layerFlops(const model::Training& job, int context) {
  const model::TokenFlops flops = model::tokenFlops(job.model, context);
  return flops.attention + flops.feedForward;
}

}  // namespace

int Serving::longestPrompt() const {
  if (traceFile.empty()) return prompt.longest();
  int longest = 0;
  for (const Request& request : trace.requests) longest = std::max(longest, request.prompt);
  return longest;
}

int Serving::longestRequest() const {
  if (traceFile.empty()) return prompt.longest() + output.longest();
  int longest = 0;
  for (const Request& request : trace.requests) {
    longest = std::max(longest, request.prompt + request.output);
  }
  return longest;
}

std::vector<Arrivals> arrivalsOf(const Serving& serving, std::uint64_t seed, int block) {
  if (!serving.traceFile.empty()) return {serving.trace};
  const std::uint64_t ofBlock = Random::mix(seed) + static_cast<std::uint64_t>(block);
  std::vector<Arrivals> all;
  for (const int qps : serving.qps) {
    const int first = static_cast<int>(all.size()) * serving.requests;
    all.push_back(poissonArrivals(qps, serving.requests, serving.prompt, serving.output, first,
                                  Random::mix(ofBlock) + all.size()));
  }
  return all;
}

Duration arrivingTime(const std::vector<Arrivals>& rates) {
  double seconds = 0;
  for (const Arrivals& rate : rates) {
    if (!rate.requests.empty()) seconds += rate.requests.back().arrival;
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

std::int64_t kvBytes(const model::ModelCard& card) {
  constexpr std::int64_t kKeysAndValues = 2;
  return kKeysAndValues * card.kvHeads * (card.hidden / card.heads) * reduction::sizeOf(card.dtype);
}

std::int64_t kvElements(const model::Training& job, int tokens) {
  const std::int64_t ofLayer = kvBytes(job.model) / reduction::sizeOf(job.model.dtype);
  return model::divideUp(ofLayer * tokens * job.layersPerStage(), job.parallel.tensor);
}

std::int64_t kvTokens(const model::Training& job) {
  std::int64_t weights = 0;
  for (int stage = 0; stage < job.parallel.pipeline; ++stage) {
    weights = std::max(weights, model::stageParameters(job, stage).total());
  }
  const std::int64_t left = job.device.memory - weights * reduction::sizeOf(job.model.dtype);
  const std::int64_t ofToken = kvElements(job, 1) * reduction::sizeOf(job.model.dtype);
  return std::max<std::int64_t>(0, left / ofToken);
}

StepTimes prefillTimes(const model::Training& job, std::span<const int> prompts) {
  double flops = 0;
  for (const int prompt : prompts) flops += prompt * layerFlops(job, prompt);
  const std::int64_t tokens = std::accumulate(prompts.begin(), prompts.end(), std::int64_t{0});
  return {.layer = secondsOf(job, flops, layerWeightBytes(job, tokens)),
          .head = headSeconds(job, prompts.size())};
}

StepTimes decodeTimes(const model::Training& job, std::span<const int> contexts) {
  double flops = 0;
  double bytes = layerWeightBytes(job, std::ssize(contexts));
  for (const int context : contexts) {
    flops += layerFlops(job, context);
    bytes += static_cast<double>(kvBytes(job.model)) * context / job.parallel.tensor;
  }
  return {.layer = secondsOf(job, flops, bytes), .head = headSeconds(job, contexts.size())};
}

std::vector<model::PlanMistake> mistakesOf(const Serving& serving, const model::Training& job,
                                           int ranks) {
  std::vector<model::PlanMistake> mistakes;
  const auto fail = [&]<typename... Args>(std::string key, fmt::format_string<Args...> format,
                                          Args&&... args) {
    mistakes.push_back({std::move(key), fmt::format(format, std::forward<Args>(args)...)});
  };
  const model::Parallel& parallel = job.parallel;
  const model::ModelCard& card = job.model;
  if (parallel.data != 1 || parallel.expert != 1 || parallel.zero != 0) {
    fail("parallel", "parallel: a server is divided by 'tensor' and 'pipeline' only");
  }
  const int needed = parallel.tensor * parallel.pipeline * serving.instances();
  if (needed != ranks) {
    fail("parallel", "parallel: tensor {} x pipeline {}{} are {} ranks, and the cluster has {}",
         parallel.tensor, parallel.pipeline,
         serving.disaggregated ? ", once for prefill and once for decode," : "", needed, ranks);
  } else if (needed == 1) {
    fail("parallel", "parallel: one rank alone communicates nothing that could be tested");
  }
  if (card.layers % parallel.pipeline != 0) {
    fail("parallel.pipeline", "pipeline: {} ranks cannot share {} layers equally",
         parallel.pipeline, card.layers);
  }
  if (card.kvHeads % parallel.tensor != 0 || card.ffn % parallel.tensor != 0) {
    fail("parallel.tensor",
         "tensor: {} ranks cannot share {} heads of keys and values and {} columns of the "
         "feed-forward part equally",
         parallel.tensor, card.kvHeads, card.ffn);
  }
  constexpr int kMostTensorRanks = 32;  // whose bfloat16 sums are checked exactly
  if (parallel.tensor > kMostTensorRanks) {
    fail("parallel.tensor", "tensor: {} ranks are more than the {} whose sums can be checked",
         parallel.tensor, kMostTensorRanks);
  }
  if (job.device.memoryBandwidth == 0) {
    fail("device",
         "device: needs the key 'memory_bandwidth' for inference: what it reads from its memory "
         "in a second, like 3350GB");
  }
  if (!mistakes.empty()) return mistakes;
  const std::int64_t room = kvTokens(job);
  if (room < serving.longestRequest()) {
    fail("device",
         "device: beside the weights, the {:.1f} GB of {} have room for keys and values of {} "
         "tokens, and the longest request has {}: raise 'tensor' or 'pipeline', or shorten "
         "'prompt' or 'output'",
         static_cast<double>(job.device.memory) / kGiga, job.device.name, room,
         serving.longestRequest());
  }
  return mistakes;
}

}  // namespace faultline::inference
