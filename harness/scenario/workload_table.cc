#include <array>

#include "harness/command/variables.h"
#include "harness/model/device_card.h"
#include "harness/model/model_card.h"
#include "harness/scenario/language_table.h"
#include "harness/scenario/scenario.h"
#include "harness/scenario/table_rows.h"
#include "harness/scenario/workload_kind.h"
#include "resilient_ccl/reduction/data_type.h"

// The keys of `workload`.
namespace faultline::scenario {
namespace {

using namespace rows;

constexpr double kMostBuckets = 4096;

constexpr std::array<std::string_view, 3> kPlaces{"out", "in", "both"};
constexpr std::array<std::string_view, 2> kDataKinds{"integers", "random"};

constexpr std::array kGradientFields{
    Field{{"size",
           Type::kSize,
           "4MiB",
           "bytes that every rank contributes per iteration",
           {},
           0,
           kLargestGradient}},
    Field{number("buckets", "4", 1, kMostBuckets,
                 "parts that are reduced as soon as their share of the compute is done; with a "
                 "'model' parts of a rank's parameters")},
    Field{choice("dtype", "f32", reduction::kDataTypeNames, "type of the elements")},
    Field{choice("data", "integers", kDataKinds,
                 "integers: small exact ones, every element of every result is compared; random: "
                 "full-mantissa values from the seed, digests are compared with fault_free")},
};
constexpr Record kGradient{"What the AllReduce of an iteration reduces.", kGradientFields};

constexpr double kLargestFactor = 1024;
constexpr ParameterSpec size(std::string_view name, std::string_view fallback,
                             std::string_view meaning) {
  return {name, Type::kSize, fallback, meaning, {}, 1, kLargestGradient};
}

const std::array kCollectiveFields{
    Field{choice("operations", "all_reduce", operationNames(),
                 "what is called: a name, or a list of names"),
          Shape::kList},
    Field{size("sizes", "1MiB",
               "bytes of the larger of a rank's input and output: one, or a list; or 'from' and "
               "'to'"),
          Shape::kList},
    Field{size("from", "", "the smallest of a range of sizes")},
    Field{size("to", "", "the largest of them")},
    Field{number("factor", "2", 2, kLargestFactor, "from one of them to the next")},
    Field{choice("dtypes", "f32", reduction::kDataTypeNames, "types of the elements"),
          Shape::kList},
    Field{choice("ops", "sum", reduction::kReduceOpNames, "operators, of operations that reduce"),
          Shape::kList},
    Field{number("settle_calls", "400", 0, kMostIterations,
                 "while 'auto' is still trying which algorithm is the fastest for a combination, "
                 "it is called up to so many times more, in the warm-up and after that; these "
                 "calls are checked, and are no iterations")},
    Field{choice("place", "out", kPlaces,
                 "out: source and target are different memory; in: the same; both: one after the "
                 "other. all_to_all and send_recv are never in place")},
};
const Record kCollective{"What 'collective' calls: every combination.", kCollectiveFields};

constexpr double kMostLayers = 256;
constexpr double kWidestModel = 100'000;
constexpr double kWidestFeedForward = 1'000'000;
constexpr double kMostWords = 10'000'000;
constexpr double kLongestSequence = 1'000'000;
constexpr double kMostExperts = 256;
constexpr double kFastestDevice = 1e9;  // GFLOP/s
constexpr double kLargestMemory = 10e12;
constexpr double kFastestMemory = 1e15;  // bytes per second
constexpr double kMostOfOneDegree = 4096;
constexpr double kMostMicroBatches = 256;
constexpr double kLargestMicroBatch = 1024;
constexpr double kLargestScale = 1'000'000;
constexpr std::array<std::string_view, 3> kModelTypes{"bf16", "f16", "f32"};

const std::array kModelFields{
    Field{{"name", Type::kText, "custom", "what reports call it"}},
    Field{choice("family", "gpt", model::kFamilyNames,
                 "gpt: GELU, biases, learned positions, one embedding for input and output; llama: "
                 "SwiGLU, no biases, rotary positions, an output matrix of its own")},
    Field{number("layers", "", 1, kMostLayers, "layers"), Shape::kScalar, true},
    Field{number("hidden", "", 1, kWidestModel, "width of what passes from layer to layer"),
          Shape::kScalar, true},
    Field{number("heads", "", 1, kWidestModel, "heads of attention"), Shape::kScalar, true},
    Field{
        number("kv_heads", "", 1, kWidestModel,
               "heads of keys and values, fewer with grouped-query attention; without it 'heads'")},
    Field{number("ffn", "", 1, kWidestFeedForward,
                 "width of the feed-forward part; without it 4 x 'hidden'")},
    Field{number("vocabulary", "", 1, kMostWords, "tokens that the model knows"), Shape::kScalar,
          true},
    Field{number("sequence", "", 1, kLongestSequence, "tokens of a sample, as it was trained"),
          Shape::kScalar, true},
    Field{number("experts", "1", 1, kMostExperts, "feed-forward parts of each layer")},
    Field{number("active_experts", "1", 1, kMostExperts, "of them, that a token passes through")},
    Field{choice("dtype", "bf16", kModelTypes, "type of parameters, gradients and activations")},
};
const Record kModel{
    "What is trained: a preset ('faultline list models'), or the card of a model. Message sizes "
    "and "
    "times of compute follow from it, in place of 'compute' and of 'gradient's size and dtype.",
    kModelFields};

constexpr std::array kDeviceFields{
    Field{{"name", Type::kText, "custom", "what reports call it"}},
    Field{number("gflops", "", 1, kFastestDevice,
                 "10^9 floating-point operations per second, at its peak"),
          Shape::kScalar, true},
    Field{{"efficiency",
           Type::kPercent,
           "50%",
           "share of the peak that training reaches",
           {},
           1,
           100}},
    Field{{"memory",
           Type::kSize,
           "80GB",
           "what a rank needs must fit into it",
           {},
           1,
           kLargestMemory}},
    Field{{"memory_bandwidth",
           Type::kSize,
           "",
           "bytes that it reads from there in a second; inference needs it",
           {},
           1,
           kFastestMemory}},
};
constexpr Record kDevice{"What a rank computes on: a preset ('faultline list devices'), or a card.",
                         kDeviceFields};

constexpr std::array kParallelFields{
    Field{number("data", "1", 1, kMostOfOneDegree, "copies; with shared experts, of each expert")},
    Field{number("tensor", "1", 1, kMostOfOneDegree,
                 "ranks that share every matrix; neighbours in number, so on one node first")},
    Field{number("pipeline", "1", 1, kMostOfOneDegree,
                 "stages of layers; micro-batches pass through them in the order 1F1B")},
    Field{number("expert", "1", 1, kMostOfOneDegree,
                 "ranks that share the experts of a layer; of what is dense there are data x "
                 "expert copies")},
    Field{number("zero", "0", 0, 3,
                 "what the copies share: 1: optimizer states, 2: gradients too, 3: parameters "
                 "too")},
};
constexpr Record kParallel{
    "How a model is divided; data x tensor x pipeline x expert are the ranks.", kParallelFields};

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

constexpr double kMostProcesses = 64;
constexpr double kLargestExit = 255;

constexpr std::array kProgramMetricFields{
    Field{labelled("regex",
                   "regular expression (ECMAScript, without back references and look-arounds, 1024 "
                   "bytes at most) with one group, around the number; it is looked for in each "
                   "line that the processes print, in the order of ranks, standard "
                   "output before errors; either this or 'json'")},
    Field{labelled("json",
                   "file with one JSON document, that the program writes into its output folder; "
                   "stdout.txt there is what it prints; every process that has the file counts; "
                   "either this or 'regex'")},
    Field{labelled("path",
                   "where the number is in 'json': keys and indices with dots between, like "
                   "end.sum_received.bits_per_second")},
    Field{labelled("unit", "for the report, like GB/s")},
    Field{choice("take", "last", command::kTakeNames, "which counts, when there are several")},
};
constexpr Record kProgramMetric{"One number that the programs tell.", kProgramMetricFields};

constexpr std::array kCommandFields{
    Field{labelled("run",
                   "program and arguments, without a shell: write [sh, -c, 'text'] for one; "
                   "placeholders like {rank} are replaced"),
          Shape::kWords, true},
    Field{number("per_node", "", 1, kMostProcesses,
                 "processes on each node, cluster.ranks_per_node by default")},
    Field{number("nodes", "", 0, kMostNodes - 1, "nodes that run it, all by default"),
          Shape::kList},
    Field{labelled("env",
                   "variables of the environment, besides those that are always there; "
                   "placeholders are replaced"),
          Shape::kTexts},
    Field{labelled("workdir",
                   "where the program starts; by default where faultline did; "
                   "placeholders are replaced")},
    Field{duration("time_limit", "", kMillisecond,
                   "longest time of one run, limits.deadline by default: then SIGTERM to all "
                   "processes, and after 2 s SIGKILL")},
    Field{number("success_exit", "0", 0, kLargestExit,
                 "exit codes that mean success; any other one ends the run"),
          Shape::kList},
    Field{labelled("progress",
                   "file in the output folder into which the program writes the number of each "
                   "iteration, from 0, when it begins: a line of its own, appended or instead of "
                   "the one before")},
    Field{labelled("metrics", "numbers that the programs tell, by name"), Shape::kMetrics, false,
          &kProgramMetric},
    Field{{"throughput", Type::kName, "",
           "the metric that is the work per second (more is better); without it throughput is runs "
           "per second"}},
};
constexpr Record kCommand{"What 'command' starts on the nodes.", kCommandFields};

constexpr ParameterSpec kComputeSpec =
    duration("compute", "20ms", 0,
             "time of one iteration without communication: a timed wait, as a GPU would be busy; "
             "{burn: 20ms} uses the CPU");

const std::array kWorkloadFields{
    Field{
        choice(
            "kind", "", workloadKindNames(),
            "training: compute and a gradient AllReduce that overlaps it, or what follows from a "
            "'model'; collective: collective calls, as nccl-tests makes them; inference: a server "
            "of a 'model'; command: programs that are not ours"),
        Shape::kScalar, true},
    Field{number("iterations", "60", 1, kMostIterations,
                 "iterations that are measured; of 'collective': calls of each combination, each "
                 "of which is an iteration")},
    Field{number("warmup_iterations", "5", 0, kMostIterations,
                 "iterations before the clock starts; the measure of a normal one for 'during'")},
    Field{duration("time", "", kMillisecond,
                   "the run ends with the iteration in which this time is over, also when some of "
                   "'iterations' are left")},
    Field{kComputeSpec, Shape::kCompute},
    Field{labelled("gradient", kGradient.meaning), Shape::kRecord, false, &kGradient},
    Field{choice("model", "", model::modelNames(), kModel.meaning), Shape::kCard, false, &kModel},
    Field{choice("device", "", model::deviceNames(), kDevice.meaning), Shape::kCard, false,
          &kDevice},
    Field{labelled("parallel", kParallel.meaning), Shape::kRecord, false, &kParallel},
    Field{number("micro_batches", "1", 1, kMostMicroBatches,
                 "that each rank works on in an iteration, one after the other")},
    Field{number("micro_batch", "1", 1, kLargestMicroBatch, "samples of one")},
    Field{
        number("sequence", "", 1, kLongestSequence, "tokens of a sample; without it the model's")},
    Field{number("scale", "1", 1, kLargestScale,
                 "all times of compute and bytes are so many times smaller than the model's, so "
                 "that their ratio stays; latencies do not shrink")},
    Field{labelled("collective", kCollective.meaning), Shape::kRecord, false, &kCollective},
    Field{labelled("inference", kInference.meaning), Shape::kRecord, false, &kInference},
    Field{labelled("command", kCommand.meaning), Shape::kRecord, false, &kCommand},
};
const Record kWorkload{"What the ranks do.", kWorkloadFields};

}  // namespace

const Record& workloadTable() { return kWorkload; }
const Record& collectiveTable() { return kCollective; }
const Record& modelTable() { return kModel; }
const Record& deviceTable() { return kDevice; }
const Record& inferenceTable() { return kInference; }
const Record& commandTable() { return kCommand; }
const Record& programMetricTable() { return kProgramMetric; }

ParameterSpec computeSpec() { return kComputeSpec; }

}  // namespace faultline::scenario
