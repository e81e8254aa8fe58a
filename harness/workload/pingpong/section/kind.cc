#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "base/units.h"
#include "harness/scenario/call_time.h"
#include "harness/scenario/record_reader.h"
#include "harness/scenario/table_rows.h"
#include "harness/scenario/workload_json.h"
#include "harness/scenario/workload_kind.h"
#include "harness/workload/pingpong/section/values.h"

namespace faultline::scenario {
namespace {

using namespace rows;

constexpr std::string_view kSection = "pingpong";
constexpr std::array<std::string_view, 4> kKeys{"iterations", "warmup_iterations", "time",
                                                kSection};

constexpr double kLargestMessage = 1 << 30;
constexpr double kMostExchanges = Pingpong::kMostExchanges;

constexpr std::array kExchangeFields{
    Field{{"size", Type::kSize, "64KiB", "bytes of a message", {}, 1, kLargestMessage}},
    Field{number("exchanges", "20", 1, kMostExchanges,
                 "of an iteration, one after the other: a message there, and one back")},
};
constexpr Record kExchanges{
    "What pairs of ranks exchange: each with the rank half of all ranks further.", kExchangeFields};

std::span<const Field> fields() {
  static constexpr std::array kFields{
      Field{labelled(kSection, kExchanges.meaning), Shape::kRecord, false, &kExchanges}};
  return kFields;
}

std::string pathOf(std::string_view key) { return joinPath("workload.pingpong", key); }

void read(const WorkloadReading& reading, Workload& workload) {
  workload.own =
      OwnSection::of(Pingpong{.size = reading.values.get<Size>(pathOf("size")).bytes,
                              .exchanges = integer(reading.values, pathOf("exchanges"))});
}

nlohmann::ordered_json write(const Workload& workload) {
  nlohmann::ordered_json json = iterationsJson(workload);
  const Pingpong& values = pingpongOf(workload);
  json[std::string(kSection)] = {{"size", formatSize(values.size)},
                                 {"exchanges", values.exchanges}};
  return json;
}

void check(const WorkloadChecking& checking) {
  const auto fail = [&](std::string_view path, std::string message) {
    checking.findings.add(locate(checking.root, path), std::move(message));
  };
  const Cluster& cluster = checking.scenario.cluster;
  if (checking.findings.usable({"cluster.nodes", "cluster.ranks_per_node"}) &&
      cluster.ranks() % 2 != 0) {
    fail("workload.kind", fmt::format("kind: pairs are of two ranks each, and there are {}: write "
                                      "an even number of 'nodes' or of 'ranks_per_node'",
                                      cluster.ranks()));
  }
  const Pingpong& values = pingpongOf(checking.scenario.workload);
  if (checking.findings.usable({pathOf("size"), pathOf("exchanges")}) &&
      values.bytes() > Pingpong::kMostBytes) {
    fail(pathOf("exchanges"),
         fmt::format("exchanges: {} messages of {} are more than the {} that are possible in an "
                     "iteration",
                     values.exchanges, formatSize(values.size), formatSize(Pingpong::kMostBytes)));
  }
}

std::string whyAllRanksAreNeeded(const Workload& /*workload*/) {
  return "who is left without its partner has nothing to do: use 'workload: {kind: training}'";
}

std::string whyNoSchedule(const Workload& /*workload*/) {
  return "messages between two ranks follow no schedule: use 'workload: {kind: collective}'";
}

/// The time of the bytes; what a short message takes besides is not known.
Duration estimate(const Scenario& scenario, int /*block*/) {
  const Workload& workload = scenario.workload;
  const Pingpong& values = pingpongOf(workload);
  const double message =
      secondsOfCall(scenario.cluster, schedule::Collective::kSendRecv, values.size);
  return durationOfSeconds(2 * message * values.exchanges *
                           (workload.iterations + workload.warmupIterations));
}

std::string inWords(const Workload& workload) {
  const Pingpong& values = pingpongOf(workload);
  return fmt::format("{} iterations of {} exchanges of {}", workload.iterations, values.exchanges,
                     formatSize(values.size));
}

std::string starter(const WorkloadStarter& /*starter*/) {
  return "  iterations: 60\n"
         "  # Of each iteration: a message to the other rank of the pair, and one back.\n"
         "  pingpong: {size: 64KiB, exchanges: 20}\n\n";
}

}  // namespace

extern const WorkloadKind kPingpongWorkload;
constinit const WorkloadKind kPingpongWorkload{
    .name = kSection,
    .summary =
        "Messages between pairs of ranks, there and back, one after the other: the latency "
        "of a path over the resilient channel; every byte of every message is checked.",
    .brief = "messages between pairs of ranks, there and back",
    .fields = fields,
    .keys = kKeys,
    .whyNoBound =
        "no best possible: messages wait for each other, and what a path takes for a "
        "message besides its bytes is not known",
    .read = read,
    .write = write,
    .check = check,
    .whyAllRanksAreNeeded = whyAllRanksAreNeeded,
    .whyNoSchedule = whyNoSchedule,
    .estimate = estimate,
    .iterations = [](const Workload& workload) { return workload.iterations; },
    .dataOfRank =
        [](const Scenario& scenario) { return 2 * pingpongOf(scenario.workload).bytes(); },
    .inWords = inWords,
    .starter = starter,
};

}  // namespace faultline::scenario
