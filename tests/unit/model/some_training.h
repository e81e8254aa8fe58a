#pragma once

#include "harness/model/training_plan.h"

namespace faultline::model {

/// GPT-3 2.7B on A100, one micro-batch of one sample in four buckets.
inline Training someTraining(const Parallel& parallel) {
  Training training;
  training.model = *findModel("gpt3-2.7b");
  training.device = *findDevice("a100");
  training.parallel = parallel;
  training.sequence = training.model.sequence;
  training.buckets = 4;
  return training;
}

}  // namespace faultline::model
