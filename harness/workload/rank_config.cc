#include "harness/workload/rank_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <span>

#include "harness/scenario/json.h"
#include "harness/scenario/workload_kind.h"
#include "harness/workload/data.h"
#include "harness/workload/job_kind.h"
#include "resilient_ccl/comm/communicator.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "wire/message.h"

namespace faultline::workload {
namespace {

using nlohmann::json;
using scenario::DataKind;
using scenario::DataType;

constexpr std::string_view kPinnedName = "pinned";
constexpr std::string_view kPullName = "pull";

constexpr std::array kTelemetryModes{scenario::TelemetryMode::kOff, scenario::TelemetryMode::kNull,
                                     scenario::TelemetryMode::kOn};
constexpr std::array kPlaces{scenario::Place::kOut, scenario::Place::kIn, scenario::Place::kBoth};
constexpr std::array kDataKinds{DataKind::kIntegers, DataKind::kRandom};

/// Reads fields of one object; remembers the first mistake, so that callers check once.
class FieldReader {
 public:
  FieldReader(const json& object, std::string where, Status& status)
      : object_(object), where_(std::move(where)), status_(status) {
    if (!object.is_object()) fail("", "is not an object");
  }

  template <typename T>
  void read(const char* name, T& value) {
    const json* field = find(name);
    if (field == nullptr) return;
    const bool fits = std::is_same_v<T, bool>          ? field->is_boolean()
                      : std::is_same_v<T, double>      ? field->is_number()
                      : std::is_same_v<T, std::string> ? field->is_string()
                                                       : field->is_number_integer();
    if (!fits) return fail(name, "has another type");
    value = field->get<T>();
  }
  void readDuration(const char* name, Duration& value) {
    std::int64_t nanoseconds = value.count();
    read(name, nanoseconds);
    value = Duration(nanoseconds);
  }
  /// 64 bits without loss: JSON's own numbers have 53 in many programs.
  void readWord(const char* name, std::uint64_t& value) {
    std::string text;
    read(name, text);
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end) fail(name, "is not a 64-bit number");
  }
  void readKey(const char* name, auth::JobKey& value) {
    std::string text;
    read(name, text);
    const Result<auth::JobKey> key = auth::JobKey::fromHex(text);
    if (!key.ok()) return fail(name, "is not a key");
    value = *key;
  }
  /// At least one element; none, and a failure, otherwise.
  json list(const char* name) {
    const json* field = find(name);
    if (field == nullptr) return json::array();
    if (field->is_array() && !field->empty()) return *field;
    fail(name, "is not a list of anything");
    return json::array();
  }
  template <typename Enum>
  void readWords(const char* name, std::optional<Enum> (*of)(std::string_view),
                 std::vector<Enum>& values) {
    values.clear();
    for (const json& word : list(name)) {
      const auto value = word.is_string() ? of(word.get<std::string>()) : std::nullopt;
      if (!value) return fail(name, "has an unknown word");
      values.push_back(*value);
    }
  }
  template <typename Enum>
  void readName(const char* name, std::span<const Enum> known, Enum& value) {
    std::string text;
    read(name, text);
    const auto found =
        std::ranges::find_if(known, [&](Enum one) { return scenario::name(one) == text; });
    if (found == known.end()) return fail(name, "is an unknown word");
    value = *found;
  }

  const json* find(const char* name) {
    known_.insert(name);
    if (!status_.ok()) return nullptr;
    const auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    fail(name, "is missing");
    return nullptr;
  }
  /// To be called last: of what nobody has asked for.
  void refuseOthers() {
    if (!object_.is_object()) return;
    for (const auto& [key, value] : object_.items()) {
      if (!known_.contains(key)) return fail(key, "is unknown");
    }
  }
  void fail(std::string_view name, std::string_view what) {
    if (!status_.ok()) return;
    status_ = errorf(Code::kInvalidArgument, "rank configuration: {}{} {}", where_, name, what);
  }

 private:
  const json& object_;
  std::string where_;
  Status& status_;
  std::set<std::string> known_;
};

/// Durations in nanoseconds, sizes in bytes.
json limitsJson(const scenario::Limits& limits) {
  json object = json::object();
  scenario::eachLimit(limits, [&](const char* name, const auto& limit) {
    if constexpr (requires { limit.count(); }) {
      object[name] = limit.count();
    } else {
      object[name] = limit;
    }
  });
  return object;
}

void readLimits(const json& object, scenario::Limits& limits, Status& status) {
  FieldReader fields(object, "limits.", status);
  scenario::eachLimit(limits, [&](const char* name, auto& limit) {
    if constexpr (requires { limit.count(); }) {
      fields.readDuration(name, limit);
    } else {
      fields.read(name, limit);
    }
    if (limit < std::remove_reference_t<decltype(limit)>{}) fields.fail(name, "is negative");
  });
  if (limits.chunk == 0) fields.fail("chunk", "is nothing");
  fields.refuseOthers();
}

/// Calls visit(name, value) for all numbers of a training job that are at least 1.
template <typename TrainingOrConst, typename Visit>
void eachNumber(TrainingOrConst& training, const Visit& visit) {
  visit("layers", training.model.layers);
  visit("hidden", training.model.hidden);
  visit("heads", training.model.heads);
  visit("kv_heads", training.model.kvHeads);
  visit("ffn", training.model.ffn);
  visit("vocabulary", training.model.vocabulary);
  visit("trained_sequence", training.model.sequence);
  visit("experts", training.model.experts);
  visit("active_experts", training.model.activeExperts);
  visit("gflops", training.device.gflops);
  visit("memory", training.device.memory);
  visit("data_parallel", training.parallel.data);
  visit("tensor_parallel", training.parallel.tensor);
  visit("pipeline_parallel", training.parallel.pipeline);
  visit("expert_parallel", training.parallel.expert);
  visit("micro_batches", training.microBatches);
  visit("micro_batch", training.microBatch);
  visit("sequence", training.sequence);
  visit("buckets", training.buckets);
  visit("scale", training.scale);
}

json trainingJson(const model::Training& training) {
  json object{{"model", training.model.name},
              {"family", model::name(training.model.family)},
              {"dtype", scenario::name(training.model.dtype)},
              {"device", training.device.name},
              {"efficiency", training.device.efficiency},
              {"memory_bandwidth", training.device.memoryBandwidth},
              {"zero", training.parallel.zero}};
  eachNumber(training, [&](const char* name, const auto& value) { object[name] = value; });
  return object;
}

void readTraining(const json& object, model::Training& training, Status& status) {
  FieldReader fields(object, "workload.training.", status);
  fields.read("model", training.model.name);
  fields.read("device", training.device.name);
  fields.read("efficiency", training.device.efficiency);
  fields.read("memory_bandwidth", training.device.memoryBandwidth);  // 0: not known
  if (training.device.memoryBandwidth < 0) fields.fail("memory_bandwidth", "is negative");
  fields.read("zero", training.parallel.zero);
  std::string family;
  fields.read("family", family);
  training.model.family =
      family == model::name(model::Family::kGpt) ? model::Family::kGpt : model::Family::kLlama;
  if (family != model::name(training.model.family)) fields.fail("family", "is an unknown word");
  std::string dtype;
  fields.read("dtype", dtype);
  if (const auto type = reduction::dataTypeFromName(dtype)) {
    training.model.dtype = *type;
  } else {
    fields.fail("dtype", "is unknown");
  }
  eachNumber(training, [&](const char* name, auto& value) {
    fields.read(name, value);
    if (value < 1) fields.fail(name, "is below 1");
  });
  fields.refuseOthers();
}

/// What ranks need of it: lengths are drawn, and times judged, by the controller.
json servingJson(const inference::Serving& serving) {
  return {{"batch", serving.batch},
          {"prefill_tokens", serving.prefillTokens},
          {"disaggregated", serving.disaggregated}};
}

json workloadJson(const scenario::Workload& workload) {
  const scenario::Gradient& gradient = workload.gradient;
  json sweep = json::object();
  for (const auto operation : workload.collective.operations) {
    sweep["operations"].push_back(schedule::collectiveName(operation));
  }
  for (const Bytes size : workload.collective.sizes) sweep["sizes"].push_back(size);
  for (const DataType dtype : workload.collective.dtypes) {
    sweep["dtypes"].push_back(scenario::name(dtype));
  }
  for (const auto op : workload.collective.ops) sweep["ops"].push_back(reduction::nameOf(op));
  sweep["place"] = scenario::name(workload.collective.place);
  sweep["settle_calls"] = workload.collective.settleCalls;
  const JobKind& job = jobKind(*workload.kind);
  return {{"kind", workload.kind->name},
          {"own", job.write != nullptr ? job.write(workload) : json()},
          {"collective", std::move(sweep)},
          {"training", workload.model ? trainingJson(*workload.model) : json()},
          {"serving", workload.serving ? servingJson(*workload.serving) : json()},
          {"iterations", workload.iterations},
          {"warmup_iterations", workload.warmupIterations},
          {"compute_ns", workload.compute.duration.count()},
          {"burn", workload.compute.burn},
          {"gradient_bytes", gradient.size},
          {"buckets", gradient.buckets},
          {"dtype", scenario::name(gradient.dtype)},
          {"data", scenario::name(gradient.data)}};
}

void readServing(const json& object, inference::Serving& serving, Status& status) {
  FieldReader fields(object, "workload.serving.", status);
  fields.read("batch", serving.batch);
  fields.read("prefill_tokens", serving.prefillTokens);
  fields.read("disaggregated", serving.disaggregated);
  if (serving.batch < 1) fields.fail("batch", "is below 1");
  fields.refuseOthers();
}

/// A request is a list of four numbers.
json serverJson(const ServerConfig& server) {
  json rates = json::array();
  for (const inference::Arrivals& rate : server.rates) {
    json requests = json::array();
    for (const inference::Request& request : rate.requests) {
      requests.push_back({request.id, request.arrival, request.prompt, request.output});
    }
    rates.push_back({{"qps", rate.qps}, {"requests", std::move(requests)}});
  }
  return {{"rates", std::move(rates)},
          {"first_rate", server.firstRate},
          {"rate_start_ns", server.rateStart.time_since_epoch().count()},
          {"usual_prompt", server.usualPrompt},
          {"usual_output", server.usualOutput}};
}

void readServer(const json& object, ServerConfig& server, Status& status) {
  FieldReader fields(object, "server.", status);
  fields.read("first_rate", server.firstRate);
  Duration start{};
  fields.readDuration("rate_start_ns", start);
  server.rateStart = TimePoint(start);
  fields.read("usual_prompt", server.usualPrompt);
  fields.read("usual_output", server.usualOutput);
  const json* const rates = fields.find("rates");
  if (rates == nullptr || !rates->is_array()) return fields.fail("rates", "is not a list");
  for (const json& one : *rates) {
    FieldReader rate(one, "server.rates.", status);
    inference::Arrivals& made = server.rates.emplace_back();
    rate.read("qps", made.qps);
    const json* const requests = rate.find("requests");
    if (requests == nullptr || !requests->is_array()) {
      return rate.fail("requests", "is not a list");
    }
    for (const json& words : *requests) {
      const bool fits = words.is_array() && words.size() == 4 && words[0].is_number_integer() &&
                        words[1].is_number() && words[2].is_number_integer() &&
                        words[3].is_number_integer();
      if (!fits) return rate.fail("requests", "has one that is not four numbers");
      made.requests.push_back({.id = words[0].get<int>(),
                               .arrival = words[1].get<double>(),
                               .prompt = words[2].get<int>(),
                               .output = words[3].get<int>()});
    }
    rate.refuseOthers();
  }
  fields.refuseOthers();
}

void readSweep(const json& object, scenario::Sweep& sweep, Status& status) {
  FieldReader fields(object, "workload.collective.", status);
  fields.readWords("operations", schedule::collectiveFromName, sweep.operations);
  fields.readWords("dtypes", reduction::dataTypeFromName, sweep.dtypes);
  fields.readWords("ops", reduction::reduceOpFromName, sweep.ops);
  fields.readName<scenario::Place>("place", kPlaces, sweep.place);
  fields.read("settle_calls", sweep.settleCalls);
  sweep.sizes.clear();
  for (const json& size : fields.list("sizes")) {
    if (size.is_number_integer() && size.get<Bytes>() > 0) {
      sweep.sizes.push_back(size.get<Bytes>());
    } else {
      fields.fail("sizes", "has one that is not a number of bytes");
    }
  }
  fields.refuseOthers();
}

void readWorkload(const json& object, scenario::Workload& workload, Status& status) {
  FieldReader fields(object, "workload.", status);
  std::string kind;
  fields.read("kind", kind);
  if (const auto* const known = scenario::findWorkloadKind(kind); known != nullptr) {
    workload.kind = known;
  } else {
    fields.fail("kind", "is an unknown word");
  }
  if (const json* own = fields.find("own"); own != nullptr && !own->is_null()) {
    const auto read = jobKind(*workload.kind).read;
    const Status told = read != nullptr ? read(*own, workload) : okStatus();
    if (read == nullptr) fields.fail("own", "is of another workload");
    if (!told.ok()) fields.fail("own", told.message());
  }
  fields.read("iterations", workload.iterations);
  fields.read("warmup_iterations", workload.warmupIterations);
  fields.readDuration("compute_ns", workload.compute.duration);
  fields.read("burn", workload.compute.burn);
  if (const json* sweep = fields.find("collective"); sweep != nullptr) {
    readSweep(*sweep, workload.collective, status);
  }
  if (const json* training = fields.find("training"); training != nullptr && !training->is_null()) {
    readTraining(*training, workload.model.emplace(), status);
  }
  if (const json* serving = fields.find("serving"); serving != nullptr && !serving->is_null()) {
    readServing(*serving, workload.serving.emplace(), status);
  }
  scenario::Gradient& gradient = workload.gradient;
  fields.read("gradient_bytes", gradient.size);
  fields.read("buckets", gradient.buckets);
  fields.readName<DataType>("dtype", reduction::kAllDataTypes, gradient.dtype);
  fields.readName<DataKind>("data", kDataKinds, gradient.data);
  if (workload.iterations < 0) fields.fail("iterations", "is negative");
  if (workload.warmupIterations < 0) fields.fail("warmup_iterations", "is negative");
  if (workload.compute.duration < 0s) fields.fail("compute_ns", "is negative");
  if (gradient.buckets < 1) fields.fail("buckets", "is below 1");
  if (gradient.size < 0 || gradient.size % reduction::sizeOf(gradient.dtype) != 0) {
    fields.fail("gradient_bytes", "is not a whole number of elements");
  }
  fields.refuseOthers();
}

bool isAlgorithm(const RankConfig& config) {
  if (config.planned && config.algorithm == comm::CommunicatorOptions::kAnyAlgorithm) return true;
  return std::ranges::any_of(schedule::algorithms(), [&](const schedule::Algorithm& one) {
    return one.name == config.algorithm;
  });
}

Status check(const RankConfig& config) {
  Status status;
  const json nothing = json::object();
  FieldReader fields(nothing, "", status);
  const scenario::Gradient& gradient = config.workload.gradient;
  const bool exact = gradient.data == DataKind::kIntegers;
  const std::optional<model::Training>& training = config.workload.model;
  const int summed = training ? std::max(training->parallel.data * training->parallel.expert,
                                         training->parallel.tensor)
                              : config.size;
  const int instances = config.workload.serving ? config.workload.serving->instances() : 1;
  if (training && training->parallel.ranks() * instances != config.size) {
    fields.fail("size", "is not the product of the degrees of parallelism");
  }
  const JobKind& kind = jobKind(*config.workload.kind);
  if (kind.make == nullptr && kind.serve == nullptr) fields.fail("kind", "has no ranks");
  const DataType summedType = training ? training->model.dtype : gradient.dtype;
  if (config.size < 1 || summed > (exact ? maxExactRanks(summedType) : kMaxExactRanks)) {
    fields.fail("size",
                fmt::format("is out of range for exact sums of {}", reduction::nameOf(summedType)));
  }
  if (kind.check != nullptr) {
    kind.check(config, [&](const char* field, const std::string& why) { fields.fail(field, why); });
  }
  if (config.rank < 0 || config.rank >= config.size) fields.fail("rank", "is out of range");
  if (config.nics.empty()) fields.fail("nics", "are none");
  if (config.segments < 1) fields.fail("segments", "is below 1");
  if (config.shrinkPatience < 0s) fields.fail("shrink_patience_ns", "is negative");
  if (config.excludeAfter < 0s) fields.fail("exclude_after_ns", "is negative");
  if (!isAlgorithm(config)) fields.fail("algorithm", "is unknown");
  if (config.checkpointEvery < 0) fields.fail("checkpoint_every", "is negative");
  if (config.checkpointEvery > 0 && config.checkpointPath.empty()) {
    fields.fail("checkpoint_path", "is needed for checkpoints");
  }
  return status;
}

}  // namespace

json toJson(const RankConfig& config) {
  json nics = json::array();
  for (const RankConfig::Nic& nic : config.nics) {
    nics.push_back({{"device", nic.device}, {"address", nic.address}});
  }
  return {{"version", wire::kVersion},
          {"rank", config.rank},
          {"size", config.size},
          {"job_key", config.jobKey.hex()},
          {"nics", std::move(nics)},
          {"management_address", config.managementAddress},
          {"rendezvous_address", config.rendezvousAddress},
          {"rendezvous_port", config.rendezvousPort},
          {"control_tos", config.controlTos},
          {"resilient", config.resilient},
          {"policy", config.policy == channel::Policy::kPull ? kPullName : kPinnedName},
          {"segments", config.segments},
          {"limits", limitsJson(config.limits)},
          {"algorithm", config.algorithm},
          {"planned", config.planned},
          {"schedule", config.schedule},
          {"telemetry", scenario::name(config.telemetry)},
          {"io_threads", config.ioThreads},
          {"workload", workloadJson(config.workload)},
          {"server", config.server ? serverJson(*config.server) : json()},
          {"seed", std::to_string(config.seed)},
          {"shrink_patience_ns", config.shrinkPatience.count()},
          {"exclude_after_ns", config.excludeAfter.count()},
          {"checkpoint_every", config.checkpointEvery},
          {"checkpoint_path", config.checkpointPath},
          {"corrupt_one_element", config.corruptOneElement}};
}

Result<RankConfig> rankConfigFromJson(const json& object) {
  RETURN_IF_ERROR(wire::checkVersion(object));
  RankConfig config;
  Status status;
  FieldReader fields(object, "", status);
  fields.read("rank", config.rank);
  fields.read("size", config.size);
  fields.readKey("job_key", config.jobKey);
  if (const json* nics = fields.find("nics"); nics != nullptr) {
    if (!nics->is_array()) fields.fail("nics", "is not a list");
    for (const json& nic : *nics) {
      FieldReader nicFields(nic, "nics.", status);
      RankConfig::Nic& made = config.nics.emplace_back();
      nicFields.read("device", made.device);
      nicFields.read("address", made.address);
      nicFields.refuseOthers();
    }
  }
  fields.read("management_address", config.managementAddress);
  fields.read("rendezvous_address", config.rendezvousAddress);
  fields.read("rendezvous_port", config.rendezvousPort);
  fields.read("control_tos", config.controlTos);
  fields.read("resilient", config.resilient);
  std::string policy;
  fields.read("policy", policy);
  if (policy == kPullName) {
    config.policy = channel::Policy::kPull;
  } else if (policy != kPinnedName) {
    fields.fail("policy", "is an unknown word");
  }
  fields.read("segments", config.segments);
  if (const json* limits = fields.find("limits"); limits != nullptr) {
    readLimits(*limits, config.limits, status);
  }
  fields.read("algorithm", config.algorithm);
  fields.read("planned", config.planned);
  fields.read("schedule", config.schedule);
  fields.readName<scenario::TelemetryMode>("telemetry", kTelemetryModes, config.telemetry);
  fields.read("io_threads", config.ioThreads);
  if (const json* workload = fields.find("workload"); workload != nullptr) {
    readWorkload(*workload, config.workload, status);
  }
  if (const json* server = fields.find("server"); server != nullptr && !server->is_null()) {
    readServer(*server, config.server.emplace(), status);
  }
  fields.readWord("seed", config.seed);
  fields.readDuration("shrink_patience_ns", config.shrinkPatience);
  fields.readDuration("exclude_after_ns", config.excludeAfter);
  fields.read("checkpoint_every", config.checkpointEvery);
  fields.read("checkpoint_path", config.checkpointPath);
  fields.read("corrupt_one_element", config.corruptOneElement);
  fields.find("version");
  fields.refuseOthers();
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(check(config));
  return config;
}

}  // namespace faultline::workload
