#include "harness/workload/command/section/json.h"

#include "harness/command/extract.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::scenario {
namespace {

using Json = nlohmann::ordered_json;

Json toJson(const command::Command& command) {
  Json json{{"run", command.run},
            {"per_node", command.perNode},
            {"nodes", command.nodes},
            {"env", command.environment}};
  if (!command.workingDirectory.empty()) json["workdir"] = command.workingDirectory;
  if (command.timeLimit) json["time_limit"] = formatDuration(*command.timeLimit);
  json["success_exit"] = command.successExit;
  if (!command.progress.empty()) json["progress"] = command.progress;
  Json& metrics = json["metrics"] = Json::object();
  for (const command::Metric& metric : command.metrics) {
    Json& keys = metrics[metric.name] = Json::object();
    if (!metric.regex.empty()) keys["regex"] = metric.regex;
    if (!metric.json.empty()) keys = {{"json", metric.json}, {"path", metric.path}};
    if (!metric.unit.empty()) keys["unit"] = metric.unit;
    keys["take"] = command::nameOf(metric.take);
  }
  if (!command.throughput.empty()) json["throughput"] = command.throughput;
  return json;
}

}  // namespace

Json commandJson(const Workload& workload) {
  return {{"kind", workload.kind->name}, {"command", toJson(workload.command)}};
}

}  // namespace faultline::scenario
