#include "harness/workload/training/section/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "harness/model/training_program.h"
#include "harness/scenario/record_reader.h"
#include "harness/workload/training/section/table.h"

namespace faultline::scenario {
namespace {

/// What a rank may hold of the messages of one iteration, each of which has memory of its own.
constexpr Bytes kMostBytesOfAnIteration = Bytes{4} << 30;

class TrainingReader {
 public:
  TrainingReader(const Node& root, const Parameters& values, Findings& findings)
      : root_(root),
        workload_(root.find("workload")),
        values_(values),
        findings_(findings),
        records_(findings) {}

  void read(int ranks, Workload& workload) {
    workload.compute = readCompute();
    workload.gradient = readGradient();
    if (workload_ == nullptr) return;
    if (find("model") == nullptr) {
      refuse({"device", "parallel", "micro_batches", "micro_batch", "sequence", "scale"},
             "only with a 'model', from which sizes and times follow");
      return;
    }
    refuse({"compute"}, "follows from the 'model'");
    refuseOfGradient();
    workload.model = readModel(workload.gradient.buckets);
    if (!workload.model) return;
    if (!checkPlan(*workload.model, ranks)) {
      workload.model.reset();
      findings_.distrust("workload.gradient");
      return;
    }
    derive(*workload.model, workload);
    checkBuffers(*workload.model);
  }

  /// What a server's sizes and times follow from; how it fits is looked at with what it serves.
  void readServed(Workload& workload) {
    workload.compute = readCompute();
    workload.gradient = readGradient();
    if (workload_ == nullptr) return;
    if (find("model") != nullptr) {
      workload.model = readModel(/*buckets=*/1);
    } else if (findings_.usable({"workload.kind"})) {
      findings_.addAt("workload.model", workload_->where,
                      "workload: a server needs the keys 'model' and 'device'");
    }
  }

 private:
  const Node* find(std::string_view key) const {
    return workload_ == nullptr ? nullptr : workload_->find(key);
  }

  void refuse(std::initializer_list<std::string_view> keys, std::string_view why) {
    for (const std::string_view key : keys) {
      if (const Node* const node = find(key)) {
        findings_.addAt(joinPath("workload", key), node->where, fmt::format("{}: {}", key, why));
      }
    }
  }
  void refuseOfGradient() {
    const Node* const gradient = find("gradient");
    if (gradient == nullptr) return;
    for (const std::string_view key : {"size", "dtype"}) {
      if (const Node* const node = gradient->find(key)) {
        findings_.addAt(joinPath("workload.gradient", key), node->where,
                        fmt::format("{}: follows from the 'model'", key));
      }
    }
  }

  Gradient readGradient() const {
    Gradient gradient;
    gradient.size = values_.get<Size>("workload.gradient.size").bytes;
    gradient.buckets = integer(values_, "workload.gradient.buckets");
    gradient.dtype =
        *reduction::dataTypeFromName(values_.get<std::string>("workload.gradient.dtype"));
    gradient.data = values_.get<std::string>("workload.gradient.data") == "random"
                        ? DataKind::kRandom
                        : DataKind::kIntegers;
    return gradient;
  }

  Compute readCompute() {
    Compute compute;
    const Node* const node = find("compute");
    if (node == nullptr) return compute;
    const std::string path = "workload.compute";
    ParameterSpec spec = computeSpec();
    if (node->kind != Node::Kind::kMap) {
      compute.duration = std::get<Duration>(records_.readScalar(*node, spec, path));
      return compute;
    }
    spec.name = kBurn;
    const std::string_view known[] = {kBurn};
    records_.refuseUnknownKeys(*node, known, path);
    compute.burn = true;
    const Node* const burn = node->find(kBurn);
    if (burn == nullptr) {
      findings_.distrust(path);
      if (node->entries.empty()) findings_.add(node->where, "compute: write 20ms, or {burn: 20ms}");
      return compute;
    }
    compute.duration = std::get<Duration>(records_.readScalar(*burn, spec, path));
    return compute;
  }

  /// A Shape::kCard: `preset(name)` or `custom(values of its mapping)`. Nothing, with a message,
  /// where it is wrong.
  template <typename Preset, typename Custom>
  auto readCard(std::string_view key, Preset preset, Custom custom)
      -> std::optional<decltype(custom(std::declval<const Parameters&>()))> {
    const Field& field = *std::ranges::find_if(
        workloadTable().fields, [&](const Field& one) { return one.spec.name == key; });
    const std::string path = joinPath("workload", key);
    const Node* const node = find(key);
    if (node == nullptr) {
      findings_.addAt(
          path, find("model")->where,
          fmt::format("model: needs the key '{}' beside it: {}", key, field.spec.meaning));
      return std::nullopt;
    }
    const std::size_t known = findings_.problems().size();
    if (node->kind == Node::Kind::kMap) {
      Parameters card;
      records_.read(node, node->where, *field.record, path, card);
      if (findings_.problems().size() > known) findings_.distrust(path);
      if (!findings_.usable({path})) return std::nullopt;
      return custom(card);
    }
    const std::string name = std::get<std::string>(records_.readScalar(*node, field.spec, path));
    if (!findings_.usable({path})) return std::nullopt;
    return *preset(name);
  }

  std::optional<model::Training> readModel(int buckets) {
    const auto card = readCard("model", model::findModel, modelOf);
    const auto device = readCard("device", model::findDevice, deviceOf);
    if (!card || !device || !findings_.usable({"workload.parallel"})) return std::nullopt;
    model::Training training;
    training.model = *card;
    training.device = *device;
    training.parallel = {.data = integer(values_, "workload.parallel.data"),
                         .tensor = integer(values_, "workload.parallel.tensor"),
                         .pipeline = integer(values_, "workload.parallel.pipeline"),
                         .expert = integer(values_, "workload.parallel.expert"),
                         .zero = integer(values_, "workload.parallel.zero")};
    training.microBatches = integer(values_, "workload.micro_batches");
    training.microBatch = integer(values_, "workload.micro_batch");
    training.sequence =
        values_.has("workload.sequence") ? integer(values_, "workload.sequence") : card->sequence;
    training.buckets = buckets;
    training.scale = integer(values_, "workload.scale");
    return training;
  }

  static model::ModelCard modelOf(const Parameters& card) {
    const auto orElse = [&](std::string_view key, int otherwise) {
      return card.has(key) ? integer(card, key) : otherwise;
    };
    const int heads = integer(card, "heads");
    const int hidden = integer(card, "hidden");
    constexpr int kUsualWidening = 4;
    return {.name = card.get<std::string>("name"),
            .family = card.get<std::string>("family") == "gpt" ? model::Family::kGpt
                                                               : model::Family::kLlama,
            .layers = integer(card, "layers"),
            .hidden = hidden,
            .heads = heads,
            .kvHeads = orElse("kv_heads", heads),
            .ffn = orElse("ffn", kUsualWidening * hidden),
            .vocabulary = integer(card, "vocabulary"),
            .sequence = integer(card, "sequence"),
            .experts = integer(card, "experts"),
            .activeExperts = integer(card, "active_experts"),
            .dtype = *reduction::dataTypeFromName(card.get<std::string>("dtype"))};
  }

  static model::DeviceCard deviceOf(const Parameters& card) {
    return {.name = card.get<std::string>("name"),
            .gflops = card.get<std::int64_t>("gflops"),
            .efficiency = card.get<Percent>("efficiency").value / kWholeInPercent,
            .memory = card.get<Size>("memory").bytes,
            .memoryBandwidth =
                card.has("memory_bandwidth") ? card.get<Size>("memory_bandwidth").bytes : 0};
  }

  /// False, with messages, when it cannot be.
  bool checkPlan(const model::Training& training, int ranks) {
    if (!findings_.usable({"workload.parallel", "workload.micro_batches", "workload.micro_batch",
                           "workload.sequence", "workload.scale", "workload.gradient.buckets"})) {
      return false;
    }
    const std::size_t known = findings_.problems().size();
    for (const model::PlanMistake& mistake : model::mistakesOf(training, ranks)) {
      const bool ofRanks = mistake.key == "parallel";
      if (ofRanks && !findings_.usable({"cluster.nodes", "cluster.ranks_per_node"})) continue;
      const std::string path = joinPath("workload", mistake.key);
      findings_.addAt(path, locate(root_, path), mistake.message);
    }
    return findings_.problems().size() == known && training.parallel.ranks() == ranks;
  }

  /// The form without a model, of which the rest of the bench knows more.
  static void derive(const model::Training& training, Workload& workload) {
    workload.compute = {.duration = model::computeTime(training), .burn = false};
    Gradient& gradient = workload.gradient;
    gradient.dtype = training.model.dtype;
    std::int64_t largest = 0;
    for (int stage = 0; stage < training.parallel.pipeline; ++stage) {
      const std::int64_t parameters = model::stageParameters(training, stage).total();
      largest = std::max(largest, (parameters + training.scale - 1) / training.scale);
    }
    gradient.size = largest * reduction::sizeOf(gradient.dtype);
  }

  void checkBuffers(const model::Training& training) {
    Bytes most = 0;
    for (int stage = 0; stage < training.parallel.pipeline; ++stage) {
      const int rank = model::rankAt(training.parallel, {.stage = stage});
      const std::int64_t elements = model::programOf(training, rank).bufferElements();
      most = std::max(most, elements * reduction::sizeOf(training.model.dtype));
    }
    if (most <= kMostBytesOfAnIteration) return;
    const std::string path = "workload.scale";
    findings_.addAt(path, locate(root_, path),
                    fmt::format("scale: the messages of an iteration take {:.1f} GB of each rank, "
                                "and {:.1f} GB are possible: a scale of {} or more fits",
                                static_cast<double>(most) / 1e9,
                                static_cast<double>(kMostBytesOfAnIteration) / 1e9,
                                training.scale * (most / kMostBytesOfAnIteration + 1)));
  }

  const Node& root_;
  const Node* const workload_;  // may be missing
  const Parameters& values_;
  Findings& findings_;
  RecordReader records_;
};

}  // namespace

void readTraining(const Node& root, const Parameters& values, int ranks, Workload& workload,
                  Findings& findings) {
  TrainingReader(root, values, findings).read(ranks, workload);
}

void readServedModel(const Node& root, const Parameters& values, Workload& workload,
                     Findings& findings) {
  TrainingReader(root, values, findings).readServed(workload);
}

}  // namespace faultline::scenario
