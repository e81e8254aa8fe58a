#include "harness/scenario/table.h"

#include <array>
#include <vector>

#include "base/text.h"
#include "harness/baseline/strategy_table.h"
#include "harness/command/variables.h"
#include "harness/model/device_card.h"
#include "harness/model/model_card.h"
#include "harness/scenario/expectation.h"
#include "harness/scenario/scenario.h"
#include "harness/scenario/vocabulary.h"
#include "injector/fault_table.h"
#include "resilient_ccl/reduction/data_type.h"

namespace faultline::scenario {
namespace {

using Type = ParameterType;

constexpr double kMostNodes = 64;
constexpr double kMostRanksPerNode = 64;
constexpr double kMostRails = 16;
constexpr double kMostIterations = 1'000'000;
constexpr double kLargestGradient = 4.0 * (1LL << 30);
constexpr double kMostBuckets = 4096;
constexpr double kMostBlocks = 1000;
constexpr double kSlowestRailRate = 1e6;  // bits per second: less does not carry the control class
constexpr double kFastestRailRate = 100e9;
constexpr double kLargestSeed = 0x1p53 - 1;  // every reader of JSON keeps it exactly
constexpr double kHour = 3600;
constexpr double kMillisecond = 0.001;
constexpr double kMostStrikes = 10'000;
constexpr double kMostGrowth = 1000;
constexpr double kMostAnswers = 60;  // the prober remembers 64 rounds
constexpr double kSmallestChunk = 4
                                  << 10;   // below it headers and system calls are what is measured
constexpr double kLargestChunk = 4 << 20;  // a rail keeps one in a buffer of its own

constexpr std::array<std::string_view, 1> kClusterKindNames{"netns"};
constexpr std::array<std::string_view, 4> kWorkloadKindNames{
    "training", Workload::kCollectiveKind, Workload::kInferenceKind, Workload::kCommandKind};
constexpr std::array<std::string_view, 3> kPlaces{"out", "in", "both"};
constexpr std::array<std::string_view, 2> kDataKinds{"integers", "random"};
constexpr std::array<std::string_view, 3> kTelemetryModes{"off", kNullWord, "on"};
constexpr std::array<std::string_view, 1> kUntil{"end"};
constexpr std::array<std::string_view, 1> kBefore{"start"};
constexpr std::array<std::string_view, 2> kNetworks{"rails", "management"};

constexpr ParameterSpec number(std::string_view name, std::string_view fallback, double minimum,
                               double maximum, std::string_view meaning) {
  return {name, Type::kInteger, fallback, meaning, {}, minimum, maximum};
}
constexpr ParameterSpec duration(std::string_view name, std::string_view fallback, double minimum,
                                 std::string_view meaning) {
  return {name, Type::kDuration, fallback, meaning, {}, minimum, kHour};
}
constexpr ParameterSpec choice(std::string_view name, std::string_view fallback,
                               std::span<const std::string_view> choices,
                               std::string_view meaning) {
  return {name, Type::kEnum, fallback, meaning, choices};
}
constexpr ParameterSpec labelled(std::string_view name, std::string_view meaning) {
  return {name, Type::kText, "", meaning};
}

constexpr std::array kClusterFields{
    Field{choice("kind", "netns", kClusterKindNames,
                 "netns: a network namespace per node, on this machine")},
    Field{number("nodes", "4", 1, kMostNodes, "nodes")},
    Field{number("ranks_per_node", "1", 1, kMostRanksPerNode,
                 "ranks (processes) on each node; a rank is a process of its own")},
    Field{number("rails", "2", 1, kMostRails, "NICs of each node, each with a switch of its own")},
    Field{{"rail_rate",
           Type::kRate,
           "400Mbit",
           "what a rail carries in each direction",
           {},
           kSlowestRailRate,
           kFastestRailRate}},
};
constexpr Record kCluster{"The machines and the network between them.", kClusterFields};

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
    Field{
        labelled("trace",
                 "file with the requests, in place of 'qps', 'requests', 'prompt' and 'output': "
                 "lines of arrival in seconds, prompt tokens, output tokens, with commas between; "
                 "from where faultline was started")},
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
    Field{
        labelled("regex",
                 "regular expression (ECMAScript) with one group, around the number; it is looked "
                 "for in each line that the processes print, in the order of ranks, standard "
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
            "kind", "", kWorkloadKindNames,
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

constexpr std::array kLimitFields{
    Field{duration("deadline", "60s", kMillisecond,
                   "longest time of one run; a run that is not over by then has failed")},
    Field{duration("give_up", "10s", kMillisecond,
                   "a rank that has not been heard, or to which no rail was up, for so long while "
                   "there was something to do is lost: an error on all ranks")},
    Field{duration("collective_timeout", "10min", kMillisecond,
                   "a collective that is not done so long after its call, though all ranks answer, "
                   "is an error on all ranks that names those that take no part in it")},
    Field{duration("longest_hold_off", "10s", kMillisecond,
                   "a rail that fails again and again is held off longer each time, and so long at "
                   "most; short for scenarios that measure many failures of one rail")},
    Field{duration("hold_off", "50ms", kMillisecond,
                   "a rail that has failed once is not taken back before this")},
    Field{number("hold_off_growth", "10", 1, kMostGrowth,
                 "so many times longer each time, when a rail fails again and again")},
    Field{duration("hold_off_memory", "10s", 0,
                   "a failure within this time of the rail's return makes its hold-off grow")},
    Field{duration("suspect_after", "10ms", kMillisecond,
                   "a rail that makes no progress for so long is tried with probes; longer than a "
                   "window takes on the slowest rail that is to count as healthy")},
    Field{
        duration("probe_interval", "2500us", kMillisecond, "pause between the probes of a trial")},
    Field{
        duration("return_probe_interval", "10ms", kMillisecond,
                 "pause between the probes of a rail that is down, at first, and when it answers")},
    Field{duration("longest_return_probe_interval", "1s", kMillisecond,
                   "while it does not answer, the pause grows with its outage, and to so long")},
    Field{number("answers_to_return", "3", 1, kMostAnswers,
                 "answers in a row after which a rail that is down counts as healed")},
    Field{duration("idle_probe_interval", "200ms", kMillisecond,
                   "pause between the probes that ask whether a rank of which something is awaited "
                   "is still there")},
    Field{{"chunk",
           Type::kSize,
           "64KiB",
           "what one rail carries at a time: a message is cut into these",
           {},
           kSmallestChunk,
           kLargestChunk}},
    Field{
        duration("window", "2ms", kMillisecond,
                 "a rail has two chunks outstanding and what it carries in so long; what a failed "
                 "rail leaves has to wait for so much on another one")},
    Field{{"tail_budget",
           Type::kSize,
           "512KiB",
           "'balance': so much of each message may be sent twice, when a faster rail is likely to "
           "deliver it sooner; 0B: nothing",
           {},
           0,
           kLargestGradient}},
    Field{duration("connect_timeout", "500ms", kMillisecond,
                   "an attempt to connect a rail, or the introduction of who connects, has failed "
                   "after this")},
    Field{duration("connect", "2s", kMillisecond,
                   "when all ranks are there, rails that do not come up are waited for so long; "
                   "then the job begins without them, if every pair of ranks has one, and uses "
                   "them when they come")},
};
constexpr Record kLimits{"When to stop waiting, how often to ask, and how much at a time.",
                         kLimitFields};

constexpr double kMostDriftRuns = 50;
constexpr ParameterSpec percent(std::string_view name, std::string_view fallback, double minimum,
                                double maximum, std::string_view meaning) {
  return {name, Type::kPercent, fallback, meaning, {}, minimum, maximum};
}
constexpr std::array kNoiseFields{
    Field{
        percent("void_above", "2%", 0.01, 100,
                "a second row of fault_free may differ by so much in 95 % of its pairs, and equal "
                "runs of the drift check from each other")},
    Field{percent("drift_above", "5%", 0.01, 100,
                  "equal runs at the end may take so much more or less time than at the "
                  "beginning")},
    Field{number("drift_check", "0", 0, kMostDriftRuns,
                 "fault-free runs that are made before all others, and as many after them, in a "
                 "row of their own (drift_check)")},
};
constexpr Record kNoise{
    "When the machine was too noisy: a result above these is void, its verdict invalid.",
    kNoiseFields};

constexpr std::array kTargetFields{
    Field{number("node", "", 0, kMostNodes - 1,
                 "the node, counted from 0; either this or 'rail_group'")},
    Field{number("rail", "", 0, kMostRails - 1,
                 "its rail, counted from 0; only for faults of a link")},
    Field{number("peer", "", 0, kMostNodes - 1,
                 "the other node; only for faults of the path between two links")},
    Field{choice("network", "rails", kNetworks,
                 "rails: the link is that of 'rail'; management: the node's link to the management "
                 "network")},
    Field{number("rail_group", "", 0, kMostRails - 1,
                 "a whole rail, as when its switch dies: the links of this rail at all nodes, at "
                 "the same moment")},
    Field{number("nodes", "", 0, kMostNodes - 1, "of 'rail_group': only at these nodes"),
          Shape::kList},
};
constexpr Record kTarget{"What the fault acts on.", kTargetFields};

constexpr std::array kDuringFields{
    Field{number("iteration", "", 0, kMostIterations - 1, "the iteration, counted from 0"),
          Shape::kScalar, true},
    Field{{"progress",
           Type::kPercent,
           "50%",
           "share of a normal iteration's bytes that the target node has moved by then",
           {},
           1,
           99}},
};
constexpr Record kDuring{"Strikes while an iteration communicates.", kDuringFields};

constexpr std::array kFaultFields{
    Field{labelled("target", kTarget.meaning), Shape::kRecord, false, &kTarget},
    Field{duration("at", "", 0,
                   "strikes at this time after the start of the run (all ranks ready, after "
                   "warm-up); either this, 'during' or 'before'")},
    Field{labelled("during",
                   "strikes while an iteration communicates; either this, 'at' or "
                   "'before'"),
          Shape::kRecord, false, &kDuring},
    Field{choice("before", "", kBefore,
                 "start: is there before the ranks are started, and lasts so long after the start "
                 "of the run as 'duration' says; either this, 'at' or 'during'")},
    Field{duration("duration", "", kMillisecond, "how long it lasts; either this or 'until'")},
    Field{choice("until", "", kUntil, "end: lasts until the end of the run")},
    Field{number("times", "1", 1, kMostStrikes,
                 "how often it strikes in one run, undone in between; needs 'every' and "
                 "'duration'")},
    Field{duration("every", "", kMillisecond,
                   "from one strike to the next; with 'during', the next one comes in the first "
                   "iteration that begins after that time, at the same progress")},
};
constexpr Record kFault{"What every fault has besides its kind's own parameters.", kFaultFields};

constexpr std::array<std::string_view, 3> kMarks{"begin", "end", "recovery"};
constexpr std::array kStepFields{
    Field{duration("after", "", 0,
                   "strikes so long after the fault before it; all but the first have it, and no "
                   "other moment")},
    Field{choice("from", "end", kMarks,
                 "of the fault before, what 'after' counts from; recovery: an iteration that began "
                 "after it is over, so that the job goes on")},
};
constexpr Record kStep{"As in 'faults', without 'times' and 'every'; and besides:", kStepFields};

constexpr std::array kSequenceFields{
    Field{labelled("faults", kStep.meaning), Shape::kSteps, true, &kStep},
    Field{number("repeat", "1", 1, kMostStrikes, "so many times, each fault undone in between")},
    Field{duration("pause", "500ms", 0,
                   "from the end of the last fault to the first one again; after it, a first one "
                   "with 'during' comes in the first iteration that begins, at its progress")},
};
constexpr Record kSequence{"Faults one after the other.", kSequenceFields};

constexpr double kLongestMtbf = 1e6 * kHour;
constexpr double kLongestMttr = 1e4 * kHour;
constexpr double kMostFailuresPerHour = 1e6;
constexpr double kFewestFailuresPerHour = 1e-6;
constexpr double kFastest = 1e9;
constexpr double kLargestWeight = 1'000'000;
constexpr std::array<std::string_view, 2> kElements{"nic", "rail"};
constexpr std::array<std::string_view, 4> kLifetimes{"exponential", "weibull", "lognormal",
                                                     "constant"};
constexpr std::array kLifetimeFields{
    Field{choice("distribution", "exponential", kLifetimes,
                 "exponential: old or new makes no difference; weibull and lognormal: see 'shape' "
                 "and 'sigma'; constant: always the mean")},
    Field{{"shape",
           Type::kDecimal,
           "1",
           "of weibull: below 1 what has just been repaired fails again sooner, above 1 it wears "
           "out",
           {},
           0.3,
           10}},
    Field{{"sigma",
           Type::kDecimal,
           "1",
           "of lognormal: standard deviation of the natural logarithm",
           {},
           0.01,
           3}},
};
constexpr Record kLifetime{"How the times scatter around their mean.", kLifetimeFields};

constexpr std::array kProcessFields{
    Field{labelled("kinds",
                   "what breaks: names of faults of a link or of processes (of the node that the "
                   "NIC is in), or {name: {parameter: value}}; 'weight' among the parameters says "
                   "how likely each is, against 1 of the others"),
          Shape::kFaultKinds, true},
    Field{
        choice("per", "nic", kElements,
               "what fails and is repaired. nic: each NIC of a node by itself; rail: each rail at "
               "all 'nodes' at once, as when its switch dies")},
    Field{{"mtbf",
           Type::kDuration,
           "",
           "mean time of each of them from a repair to the next failure; either this or "
           "'failures_per_hour'",
           {},
           kMillisecond,
           kLongestMtbf}},
    Field{{"failures_per_hour",
           Type::kDecimal,
           "",
           "of each of them while it works: one hour over its mtbf",
           {},
           kFewestFailuresPerHour,
           kMostFailuresPerHour}},
    Field{labelled("failures", kLifetime.meaning), Shape::kRecord, false, &kLifetime},
    Field{{"mttr",
           Type::kDuration,
           "",
           "mean time to repair: from a failure to its end",
           {},
           kMillisecond,
           kLongestMttr},
          Shape::kScalar,
          true},
    Field{labelled("repairs", kLifetime.meaning), Shape::kRecord, false, &kLifetime},
    Field{{"accelerate",
           Type::kDecimal,
           "1",
           "mtbf and mttr pass so many times faster: with 3600, an hour in a second. What the job "
           "does, and its time-outs, do not",
           {},
           1,
           kFastest}},
    Field{number("nodes", "", 0, kMostNodes - 1, "that have it, all by default"), Shape::kList},
    Field{number("rails", "", 0, kMostRails - 1, "that have it, all by default"), Shape::kList},
    Field{number("at_most", "0", 0, kMostNodes* kMostRails,
                 "so many of its faults at a time; 0: as many as find a place")},
    Field{number("spare_rails", "1", 0, kMostRails,
                 "so many rails are whole at every moment, at all nodes; a failure for which there "
                 "is no place is left out")},
    Field{duration("rest", "500ms", 0,
                   "after a fault its rail is spared for so long at all nodes, or its node's "
                   "processes are")},
    Field{duration("shortest", "100ms", kMillisecond,
                   "a repair that was drawn shorter takes so long: what is shorter leaves no "
                   "evidence")},
    Field{duration("for", "", kMillisecond,
                   "faults strike, and end, in this time after the start of the run"),
          Shape::kScalar, true},
};
constexpr Record kProcess{"Elements that fail and are repaired at random, from the seed.",
                          kProcessFields};

const std::array kScenarioFields{
    Field{number("version", "", 1, 1, "version of this language: 1"), Shape::kScalar, true},
    Field{{"name", Type::kName, "", "names the result"}, Shape::kScalar, true},
    Field{labelled("description", "one sentence for the report")},
    Field{labelled("cluster", kCluster.meaning), Shape::kRecord, false, &kCluster},
    Field{labelled("workload", kWorkload.meaning), Shape::kRecord, true, &kWorkload},
    Field{labelled("strategies",
                   "how the job meets the faults, one row of the report each: names, or "
                   "{name: {option: value}}; the option 'as' gives a row another name, so that one "
                   "strategy can have several; 'env' gives the programs of 'command' variables "
                   "in this row"),
          Shape::kStrategies, true},
    Field{labelled("faults", "what is broken, when and for how long"), Shape::kFaults},
    Field{labelled("sequences", "faults that come one after the other"), Shape::kRecords, false,
          &kSequence},
    Field{labelled("fault_processes",
                   "failures and repairs at random: the same seed makes the same faults, on "
                   "elements that do not depend on each other"),
          Shape::kRecords, false, &kProcess},
    Field{labelled("limits", kLimits.meaning), Shape::kRecord, false, &kLimits},
    Field{labelled("noise", kNoise.meaning), Shape::kRecord, false, &kNoise},
    Field{choice("telemetry", "off", kTelemetryModes,
                 "on: the ranks record their transfers and what happens to rails for trace.json; "
                 "null: events are made and thrown away, to measure what making them costs")},
    Field{number("io_threads", "0", 0, kMostRails,
                 "threads of each rank that move the payload of its rails, each rail owned by one; "
                 "0: its progress thread does. For rails faster than a core can copy")},
    Field{number("repeat", "1", 1, kMostBlocks,
                 "blocks of runs; each runs every strategy once, so that overheads are compared "
                 "inside a block")},
    Field{number("seed", "1", 0, kLargestSeed, "makes a run repeatable")},
    Field{labelled("expect",
                   "what must hold, as 'metric comparison value', like 'hot_repair.failovers.count "
                   ">= 1'"),
          Shape::kExpectations},
};
const Record kScenario{"One experiment.", kScenarioFields};

std::string factsOf(const Field& field) {
  const ParameterSpec& spec = field.spec;
  std::string facts;
  switch (field.shape) {
    case Shape::kScalar:
      facts = typeOf(spec);
      break;
    case Shape::kRecord:
      facts = "mapping";
      break;
    case Shape::kCompute:
      facts = "duration or {burn: duration}";
      break;
    case Shape::kCard:
      facts = fmt::format("{}, or a mapping", typeOf(spec));
      break;
    case Shape::kMetrics:
      facts = "mapping of names";
      break;
    case Shape::kTexts:
      facts = "mapping of texts";
      break;
    case Shape::kWords:
      facts = "list of texts";
      break;
    case Shape::kList:
      facts = fmt::format("{}, or a list", typeOf(spec));
      break;
    default:
      facts = "list";
  }
  if (field.required) facts += ", required";
  if (!spec.defaultText.empty()) facts += fmt::format(", default {}", spec.defaultText);
  if (spec.bounded() && spec.minimum < spec.maximum) {
    facts +=
        fmt::format(", {} to {}", formatBound(spec, spec.minimum), formatBound(spec, spec.maximum));
  }
  return facts;
}

}  // namespace

const Record& scenarioTable() { return kScenario; }
const Record& workloadTable() { return kWorkload; }
const Record& collectiveTable() { return kCollective; }
const Record& modelTable() { return kModel; }
const Record& deviceTable() { return kDevice; }
const Record& inferenceTable() { return kInference; }
const Record& commandTable() { return kCommand; }
const Record& programMetricTable() { return kProgramMetric; }
const Record& faultTable() { return kFault; }
const Record& targetTable() { return kTarget; }
const Record& stepTable() { return kStep; }
const Record& sequenceTable() { return kSequence; }
const Record& processTable() { return kProcess; }

ParameterSpec weightSpec() {
  return number("weight", "1", 1, kLargestWeight, "how likely this kind is, against the others");
}

ParameterSpec faultKindSpec() {
  static const std::vector<std::string_view> kKinds = [] {
    std::vector<std::string_view> names;
    for (const auto& kind : injector::faultKinds()) names.push_back(kind.name);
    return names;
  }();
  return {"kind", Type::kEnum, "", "what is broken and how", kKinds};
}

ParameterSpec computeSpec() { return kComputeSpec; }

std::string describeField(const Field& field, const std::string& path) {
  const std::string name = path + std::string(field.spec.name);
  std::string page =
      fmt::format("{}\n    {}\n", wrapText(fmt::format("{} ({})", name, factsOf(field)), 4),
                  wrapText(field.spec.meaning, 4));
  const Record* inner = field.shape == Shape::kFaults ? &kFault : field.record;
  if (inner == nullptr) return page;
  const bool listed = field.shape == Shape::kFaults || field.shape == Shape::kSteps ||
                      field.shape == Shape::kRecords;
  const std::string inside = name + (listed                           ? "[]."
                                     : field.shape == Shape::kMetrics ? ".<name>."
                                                                      : ".");
  for (const Field& part : inner->fields) page += describeField(part, inside);
  return page;
}

std::string describeScenario() {
  constexpr std::size_t kNameColumns = 18;
  constexpr std::size_t kMetricColumns = 31;
  std::string page =
      "A scenario is a YAML file. Keys that are not listed here are mistakes.\n"
      "Values carry their unit: 20ms, 4MiB, 400Mbit, 50%. Counting starts at 0.\n\n";
  for (const Field& field : kScenario.fields) page += describeField(field, "");
  page += "\nkinds of faults\n";
  for (const auto& kind : injector::faultKinds())
    page += describeRow(kind.name, kind.summary, kNameColumns);
  page += "\nstrategies\n";
  for (const auto& strategy : baseline::strategies()) {
    page += describeRow(strategy.name, strategy.summary, kNameColumns);
  }
  page +=
      "\nvariables of the processes of 'command': FAULTLINE_RANK in the environment is {rank} as "
      "a\nplaceholder, and so on\n" +
      command::describeVariables();
  page += "\nmetrics for 'expect': <strategy>.<metric>, or the metric alone where marked with *\n";
  for (const Metric& metric : metricTable()) {
    page += describeRow(
        fmt::format("{}{}", metric.path, metric.owner == Metric::Owner::kStrategy ? "" : " *"),
        metric.doc, kMetricColumns);
  }
  return page;
}

}  // namespace faultline::scenario
