#include "harness/analysis/training_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/model/training_program.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::run {
namespace {

/// Of one rank.
std::array<reports::TrainingPhase, model::kPhases> phasesOf(const model::Training& training,
                                                            int rank) {
  std::array<reports::TrainingPhase, model::kPhases> rows;
  for (const model::Call& call : model::programOf(training, rank).calls) {
    reports::TrainingPhase& row = rows[static_cast<std::size_t>(call.phase)];
    const bool passed =
        call.operation == model::Operation::kSend || call.operation == model::Operation::kReceive;
    row.operation = passed ? "send_receive" : model::nameOf(call.operation);
    row.ranks = static_cast<int>(model::membersOf(training, call.group, rank).size());
    ++row.calls;
    row.bytes += call.elements() * reduction::sizeOf(training.model.dtype);
    row.real_bytes += call.realBytes;
  }
  return rows;
}

}  // namespace

std::optional<reports::TrainingFacts> trainingFacts(const scenario::Scenario& scenario) {
  if (!scenario.workload.model || scenario.workload.kind->hasRequests) return std::nullopt;
  const model::Training& training = *scenario.workload.model;
  const model::Parallel& parallel = training.parallel;
  const model::TokenFlops flops = model::tokenFlops(training.model, training.sequence);
  const model::Memory memory = model::largestMemory(training);
  reports::TrainingFacts facts;
  facts.model = training.model.name;
  facts.device = training.device.name;
  facts.scale = training.scale;
  facts.parameters = model::countParameters(training.model).total;
  facts.flops_per_token = flops.forward() + flops.backward();
  facts.tokens_per_iteration =
      training.tokensPerMicroBatch() * training.microBatches * parallel.data * parallel.expert;
  facts.compute_ms = toMilliseconds(model::computeTime(training));
  facts.real_compute_ms = facts.compute_ms * training.scale;
  facts.states_bytes = memory.states;
  facts.activations_bytes = memory.activations;
  facts.device_bytes = static_cast<double>(training.device.memory);
  std::array<reports::TrainingPhase, model::kPhases> busiest;
  for (int stage = 0; stage < parallel.pipeline; ++stage) {
    facts.parameters_per_rank =
        std::max(facts.parameters_per_rank, model::stageParameters(training, stage).total());
    const auto rows = phasesOf(training, model::rankAt(parallel, {.stage = stage}));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].real_bytes > busiest[i].real_bytes) busiest[i] = rows[i];
    }
  }
  for (std::size_t i = 0; i < busiest.size(); ++i) {
    if (busiest[i].calls == 0) continue;
    busiest[i].phase = model::kPhaseNames[i];
    facts.phases.push_back(std::move(busiest[i]));
  }
  return facts;
}

std::string scaleOfServer(const scenario::Scenario& scenario) {
  if (!scenario.workload.kind->hasRequests || scenario.workload.model->scale == 1) return "";
  const model::Training& server = *scenario.workload.model;
  return fmt::format(
      "scale {}: all times and bytes of the model ({}, {} layers) on its device are so many times "
      "smaller here; rates, objectives and latencies are those of this machine's clock",
      server.scale, server.model.name, server.model.layers);
}

}  // namespace faultline::run
