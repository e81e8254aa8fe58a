#include "harness/workload/training/section/table.h"

#include <array>

#include "harness/model/device_card.h"
#include "harness/model/model_card.h"
#include "harness/scenario/table_rows.h"
#include "resilient_ccl/reduction/data_type.h"

namespace faultline::scenario {
namespace {

using namespace rows;

constexpr double kMostBuckets = 4096;

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

constexpr ParameterSpec kComputeSpec =
    duration("compute", "20ms", 0,
             "time of one iteration without communication: a timed wait, as a GPU would be busy; "
             "{burn: 20ms} uses the CPU");

}  // namespace

ParameterSpec computeSpec() { return kComputeSpec; }
const Record& modelTable() { return kModel; }
const Record& deviceTable() { return kDevice; }

std::span<const Field> trainingFields() {
  static const std::array kFields{
      Field{kComputeSpec, Shape::kCompute},
      Field{labelled("gradient", kGradient.meaning), Shape::kRecord, false, &kGradient},
      Field{choice("model", "", model::modelNames(), kModel.meaning), Shape::kCard, false, &kModel},
      Field{choice("device", "", model::deviceNames(), kDevice.meaning), Shape::kCard, false,
            &kDevice},
      Field{labelled("parallel", kParallel.meaning), Shape::kRecord, false, &kParallel},
      Field{number("micro_batches", "1", 1, kMostMicroBatches,
                   "that each rank works on in an iteration, one after the other")},
      Field{number("micro_batch", "1", 1, kLargestMicroBatch, "samples of one")},
      Field{number("sequence", "", 1, kLongestSequence,
                   "tokens of a sample; without it the model's")},
      Field{number("scale", "1", 1, kLargestScale,
                   "all times of compute and bytes are so many times smaller than the model's, so "
                   "that their ratio stays; latencies do not shrink")},
  };
  return kFields;
}

}  // namespace faultline::scenario
