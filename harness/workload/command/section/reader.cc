#include "harness/workload/command/section/reader.h"

#include <fmt/format.h>

#include <numeric>
#include <string>

#include "harness/command/extract.h"
#include "harness/scenario/document.h"
#include "harness/scenario/record_reader.h"
#include "harness/workload/command/section/table.h"

namespace faultline::scenario {
namespace {

constexpr const char* kCommandPath = "workload.command";

std::vector<int> integers(const std::vector<ParameterValue>& values) {
  std::vector<int> numbers;
  for (const ParameterValue& value : values) {
    numbers.push_back(static_cast<int>(std::get<std::int64_t>(value)));
  }
  return numbers;
}

std::string textOr(const Parameters& values, std::string_view name) {
  return values.has(name) ? values.get<std::string>(name) : std::string();
}

/// A word without dots: expectations have one behind `metrics`.
bool isMetricName(std::string_view name) {
  const ParameterSpec word{"name", ParameterType::kName, "", ""};
  return name.find('.') == std::string_view::npos && parseParameter(word, name).ok();
}

class CommandReader {
 public:
  explicit CommandReader(Findings& findings) : findings_(findings), records_(findings) {}

  std::vector<command::Metric> metricsOf(const Node& node) {
    const std::string path = joinPath(kCommandPath, "metrics");
    std::vector<command::Metric> metrics;
    if (node.kind != Node::Kind::kMap) {
      findings_.addAt(path, node.where,
                      fmt::format("metrics: a mapping like {{busbw: {{regex: 'busbw ([0-9.]+)'}}}} "
                                  "is expected, not {}",
                                  describe(node)));
      return metrics;
    }
    for (const Entry& entry : node.entries) {
      if (!isMetricName(entry.key)) {
        findings_.addAt(path, entry.where,
                        fmt::format("metrics: '{}' is no name: letters, digits, '_' and '-' are",
                                    shortened(entry.key)));
        continue;
      }
      metrics.push_back(metricOf(entry, joinPath(path, entry.key)));
    }
    return metrics;
  }

 private:
  command::Metric metricOf(const Entry& entry, const std::string& path) {
    Parameters values;
    records_.read(&entry.value, entry.where, programMetricTable(), path, values);
    command::Metric metric{.name = entry.key,
                           .regex = textOr(values, "regex"),
                           .json = textOr(values, "json"),
                           .path = textOr(values, "path"),
                           .unit = textOr(values, "unit"),
                           .take = command::takeFromName(values.get<std::string>("take"))};
    if (!findings_.usable({path, joinPath(path, "regex"), joinPath(path, "json")})) return metric;
    if (metric.regex.empty() == metric.json.empty()) {
      findings_.addAt(path, entry.where,
                      fmt::format("{}: write either 'regex' or 'json' and 'path'", entry.key));
    } else if (metric.json.empty() != metric.path.empty()) {
      findings_.addAt(path, entry.where,
                      fmt::format("{}: 'json' and 'path' belong together", entry.key));
    } else if (!metric.regex.empty()) {
      const Status status = command::checkRegex(metric.regex);
      if (!status.ok()) {
        findings_.addAt(path, entry.value.find("regex")->where,
                        fmt::format("{}: {}", entry.key, oneLine(status.message(), 300)));
      }
    }
    return metric;
  }

  Findings& findings_;
  RecordReader records_;
};

}  // namespace

command::Command readCommand(const Node& root, const Parameters& values, const Cluster& cluster,
                             Findings& findings) {
  command::Command command;
  const Node* const workload = root.find("workload");
  const Node* const node = workload == nullptr ? nullptr : workload->find("command");
  const std::string path = kCommandPath;
  if (node == nullptr || node->kind != Node::Kind::kMap) {
    if (node == nullptr && findings.usable({path, "workload.kind"})) {
      findings.addAt(
          path, locate(root, "workload.kind"),
          "a workload of kind command needs the key 'command', like {run: [iperf3, -s]}");
    }
    return command;
  }
  RecordReader records(findings);
  if (const Node* const run = node->find("run")) {
    command.run = records.readWords(*run, "run", joinPath(path, "run"));
  }
  command.perNode = values.has(joinPath(path, "per_node"))
                        ? integer(values, joinPath(path, "per_node"))
                        : cluster.ranksPerNode;
  command.nodes = integers(records.readList(node, commandTable(), "nodes", path));
  if (command.nodes.empty()) {
    command.nodes.resize(static_cast<std::size_t>(cluster.nodes));
    std::iota(command.nodes.begin(), command.nodes.end(), 0);
  }
  command.successExit = integers(records.readList(node, commandTable(), "success_exit", path));
  if (const Node* const env = node->find("env")) {
    command.environment = records.readTexts(*env, "env", joinPath(path, "env"));
  }
  command.workingDirectory = textOr(values, joinPath(path, "workdir"));
  if (values.has(joinPath(path, "time_limit"))) {
    command.timeLimit = values.get<Duration>(joinPath(path, "time_limit"));
  }
  command.progress = textOr(values, joinPath(path, "progress"));
  command.throughput = textOr(values, joinPath(path, "throughput"));
  if (const Node* const metrics = node->find("metrics")) {
    command.metrics = CommandReader(findings).metricsOf(*metrics);
  }
  return command;
}

}  // namespace faultline::scenario
