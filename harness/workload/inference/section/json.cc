#include "harness/workload/inference/section/json.h"

#include "harness/scenario/workload_kind.h"
#include "harness/workload/training/section/json.h"

namespace faultline::scenario {
namespace {

using Json = nlohmann::ordered_json;

Json toJson(const inference::Lengths& lengths) {
  return {{"mean", lengths.mean},
          {"spread", inference::nameOf(lengths.spread)},
          {"cv", formatParameter(Percent{lengths.cv * kWholeInPercent})}};
}

Json toJson(const inference::Serving& serving) {
  Json json = Json::object();
  if (serving.traceFile.empty()) {
    json = {{"qps", serving.qps},
            {"requests", serving.requests},
            {"prompt", toJson(serving.prompt)},
            {"output", toJson(serving.output)}};
  } else {
    json["trace"] = serving.traceFile;
  }
  json["batch"] = serving.batch;
  json["prefill_tokens"] = serving.prefillTokens;
  json["disaggregated"] = serving.disaggregated;
  json["objectives"] = {{"ttft", formatDuration(serving.objectives.ttft)},
                        {"tpot", formatDuration(serving.objectives.tpot)}};
  return json;
}

}  // namespace

/// What its sizes and times follow from, without what only training has.
Json serverJson(const Workload& workload) {
  if (!workload.model || !workload.serving) return trainingJson(workload);
  Json all = Json::object();
  addModel(*workload.model, all);
  return {{"kind", workload.kind->name},
          {"warmup_iterations", workload.warmupIterations},
          {"model", all["model"]},
          {"device", all["device"]},
          {"parallel",
           {{"tensor", workload.model->parallel.tensor},
            {"pipeline", workload.model->parallel.pipeline}}},
          {"scale", workload.model->scale},
          {"inference", toJson(*workload.serving)}};
}

}  // namespace faultline::scenario
