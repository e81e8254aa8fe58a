#include "harness/workload/inference/section/table.h"

#include <array>

#include "harness/inference/serving.h"
#include "harness/scenario/table_rows.h"

namespace faultline::scenario {
namespace {

using namespace rows;

constexpr double kLongestSequence = 1'000'000;
constexpr double kMostRequests = 10'000;
constexpr double kMostQps = 10'000;
constexpr double kLargestBatch = 256;
constexpr double kWidestSpread = 500;  // percent

constexpr ParameterSpec kSpread =
    choice("spread", "fixed", inference::kSpreadNames,
           "fixed: all have the mean; uniform: as likely everywhere between (1 - cv) and (1 + cv) "
           "means; lognormal: many short and few long ones, at most 4 means");
constexpr ParameterSpec kVariation{"cv",
                                   Type::kPercent,
                                   "50%",
                                   "half the width (uniform), or the deviation (lognormal), over "
                                   "the mean",
                                   {},
                                   0,
                                   kWidestSpread};
constexpr std::array kPromptFields{Field{number("mean", "512", 1, kLongestSequence, "tokens")},
                                   Field{kSpread}, Field{kVariation}};
constexpr Record kPrompt{"How long the prompts are.", kPromptFields};
constexpr std::array kOutputFields{Field{number("mean", "32", 1, kLongestSequence, "tokens")},
                                   Field{kSpread}, Field{kVariation}};
constexpr Record kOutput{"How many tokens the answers have.", kOutputFields};

constexpr std::array kObjectiveFields{
    Field{duration("ttft", "5s", kMillisecond, "longest time to the first token")},
    Field{duration("tpot", "400ms", kMillisecond, "longest mean time of each further token")},
};
constexpr Record kObjectives{"Within these a request is good; beyond them it is late.",
                             kObjectiveFields};

constexpr std::array kInferenceFields{
    Field{number("qps", "1", 1, kMostQps,
                 "requests per second, as a Poisson process: one rate, or a list of rates, one "
                 "after the other"),
          Shape::kList},
    Field{number("requests", "60", 1, kMostRequests, "requests of each rate")},
    Field{labelled(
        "trace",
        "file with the requests, in place of 'qps', 'requests', 'prompt' and 'output': "
        "lines of arrival in seconds, prompt tokens, output tokens, with commas between, or "
        "a trace as Azure, BurstGPT or Mooncake publish theirs; from where faultline was "
        "started")},
    Field{labelled("prompt", kPrompt.meaning), Shape::kRecord, false, &kPrompt},
    Field{labelled("output", kOutput.meaning), Shape::kRecord, false, &kOutput},
    Field{number("batch", "16", 1, kLargestBatch, "requests that are under way at the same time")},
    Field{number("prefill_tokens", "2048", 1, kLongestSequence,
                 "prompt tokens of one step; a longer prompt has a step of its own")},
    Field{{"disaggregated", Type::kFlag, "false",
           "prefill on the first half of the ranks, decode on the second one; keys and values of "
           "each request are moved between them"}},
    Field{labelled("objectives", kObjectives.meaning), Shape::kRecord, false, &kObjectives},
};
constexpr Record kInference{"What 'inference' is asked for, and how it serves.", kInferenceFields};

}  // namespace

const Record& inferenceTable() { return kInference; }

std::span<const Field> inferenceFields() {
  static constexpr std::array kFields{
      Field{labelled("inference", kInference.meaning), Shape::kRecord, false, &kInference},
  };
  return kFields;
}

}  // namespace faultline::scenario
