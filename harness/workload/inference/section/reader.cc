#include "harness/workload/inference/section/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "base/input_file.h"
#include "harness/inference/trace.h"
#include "harness/model/divide.h"
#include "harness/scenario/record_reader.h"
#include "harness/workload/inference/section/table.h"

namespace faultline::scenario {
namespace {

constexpr std::size_t kLongestTrace = 64 << 20;  // bytes: of Mooncake's a request can have a KiB
constexpr std::size_t kMostTraced = 10'000;      // requests: as many as 'requests' can be
constexpr Bytes kMostBytesOfAMessage = Bytes{1} << 30;

class ServingReader {
 public:
  ServingReader(const Node& root, const Parameters& values, Findings& findings)
      : root_(root), values_(values), findings_(findings), records_(findings) {}

  void read(int ranks, Workload& workload) {
    inference::Serving serving;
    serving.prompt = readLengths("prompt");
    serving.output = readLengths("output");
    serving.requests = integer("requests");
    serving.batch = integer("batch");
    serving.prefillTokens = integer("prefill_tokens");
    serving.disaggregated = values_.get<bool>(path("disaggregated"));
    serving.objectives = {.ttft = values_.get<Duration>(path("objectives.ttft")),
                          .tpot = values_.get<Duration>(path("objectives.tpot"))};
    serving.qps.clear();
    for (const ParameterValue& value :
         records_.readList(node(), inferenceTable(), "qps", "workload.inference")) {
      serving.qps.push_back(static_cast<int>(std::get<std::int64_t>(value)));
    }
    if (values_.has(path("trace"))) readTrace(serving);
    workload.iterations = serving.traceFile.empty()
                              ? serving.requests * static_cast<int>(serving.qps.size())
                              : static_cast<int>(serving.trace.requests.size());
    if (!workload.model || !findings_.usable({"workload.inference", "workload.parallel"})) return;
    if (fits(serving, *workload.model, ranks)) workload.serving = std::move(serving);
  }

 private:
  static std::string path(std::string_view key) { return joinPath("workload.inference", key); }
  int integer(std::string_view key) const { return scenario::integer(values_, path(key)); }
  const Node* node() const {
    const Node* const workload = root_.find("workload");
    return workload == nullptr ? nullptr : workload->find("inference");
  }

  inference::Lengths readLengths(std::string_view key) const {
    const std::string record = path(key);
    inference::Lengths lengths;
    const std::string& word = values_.get<std::string>(joinPath(record, "spread"));
    const auto found = std::ranges::find(inference::kSpreadNames, word);
    lengths.spread = static_cast<inference::Spread>(found - std::begin(inference::kSpreadNames));
    lengths.mean = scenario::integer(values_, joinPath(record, "mean"));
    lengths.cv = values_.get<Percent>(joinPath(record, "cv")).value / kWholeInPercent;
    return lengths;
  }

  void readTrace(inference::Serving& serving) {
    const std::string name = values_.get<std::string>(path("trace"));
    const Location where = locate(root_, path("trace"));
    for (const std::string_view key : {"qps", "requests", "prompt", "output"}) {
      if (const Node* const given = node()->find(key)) {
        findings_.addAt(path(key), given->where, fmt::format("{}: 'trace' says it", key));
      }
    }
    const auto text = readInput(name, {.what = "request trace", .mostBytes = kLongestTrace});
    if (!text.ok()) {
      findings_.addAt(path("trace"), where, "trace: " + text.status().message());
      return;
    }
    Result<inference::RequestTrace> trace = inference::parseTrace(*text, kMostTraced);
    if (!trace.ok()) {
      findings_.addAt(path("trace"), where,
                      fmt::format("trace: '{}': {}", name, trace.status().message()));
    } else {
      serving.traceFile = name;
      serving.traceTold = trace->inWords();
      serving.trace = std::move(trace->arrivals);
    }
  }

  bool fits(const inference::Serving& serving, const model::Training& job, int ranks) {
    const std::size_t known = findings_.problems().size();
    for (const model::PlanMistake& mistake : inference::mistakesOf(serving, job, ranks)) {
      const bool ofRanks = mistake.key == "parallel";
      if (ofRanks && !findings_.usable({"cluster.nodes", "cluster.ranks_per_node"})) continue;
      const std::string at = joinPath("workload", mistake.key);
      findings_.addAt(at, locate(root_, at), mistake.message);
    }
    const std::int64_t tokens = std::max(serving.prefillTokens, serving.longestPrompt());
    const Bytes message =
        model::divideUp(tokens * job.model.hidden, job.scale) * reduction::sizeOf(job.model.dtype);
    if (message > kMostBytesOfAMessage) {
      findings_.addAt("workload.scale", locate(root_, "workload.scale"),
                      fmt::format("scale: one message of a prefill step would take {:.1f} GB: a "
                                  "scale of {} or more fits",
                                  static_cast<double>(message) / 1e9,
                                  job.scale * (message / kMostBytesOfAMessage + 1)));
    }
    return findings_.problems().size() == known;
  }

  const Node& root_;
  const Parameters& values_;
  Findings& findings_;
  RecordReader records_;
};

}  // namespace

void readServing(const Node& root, const Parameters& values, int ranks, Workload& workload,
                 Findings& findings) {
  ServingReader(root, values, findings).read(ranks, workload);
}

}  // namespace faultline::scenario
