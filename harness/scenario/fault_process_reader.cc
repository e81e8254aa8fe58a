#include "harness/scenario/fault_process_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "harness/scenario/document.h"
#include "harness/scenario/fault_process.h"
#include "harness/scenario/language_table.h"
#include "harness/scenario/lifetime.h"
#include "harness/scenario/record_reader.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

std::vector<std::string_view> possibleKinds() {
  std::vector<std::string_view> names;
  for (const injector::FaultKind& kind : injector::faultKinds()) {
    if (canBeRandom(kind)) names.push_back(kind.name);
  }
  return names;
}

void readKind(const Node& node, const std::string& path, Findings& findings,
              FaultProcess& process) {
  const bool named = node.kind == Node::Kind::kMap && node.entries.size() == 1;
  if (!named && node.kind != Node::Kind::kScalar) {
    findings.addAt(path, node.where,
                   fmt::format("a kind of fault is a name or {{name: {{parameter: value}}}}, not "
                               "{}",
                               describe(node)));
    return;
  }
  const std::string& name = named ? node.entries.front().key : node.text;
  const Location where = named ? node.entries.front().where : node.where;
  const injector::FaultKind* const kind = injector::findFaultKind(name);
  if (kind == nullptr || !canBeRandom(*kind)) {
    const auto possible = possibleKinds();
    findings.addAt(path, where,
                   kind == nullptr ? fmt::format("unknown kind of fault '{}'{}", shortened(name),
                                                 suggestion(name, possible))
                                   : fmt::format("{} cannot strike at random: possible are {}",
                                                 name, join(possible, ", ")));
    return;
  }
  const Node* parameters = named ? &node.entries.front().value : nullptr;
  if (parameters != nullptr && parameters->kind == Node::Kind::kNull) parameters = nullptr;
  if (parameters != nullptr && parameters->kind != Node::Kind::kMap) {
    findings.addAt(path, parameters->where,
                   fmt::format("{}: a mapping of parameters is expected, not {}", name,
                               describe(*parameters)));
    return;
  }
  RecordReader records(findings);
  const std::string inside = joinPath(path, name);
  if (parameters != nullptr) {
    std::vector<std::string_view> keys;
    for (const ParameterSpec& spec : kind->parameters) keys.push_back(spec.name);
    keys.push_back(weightSpec().name);
    records.refuseUnknownKeys(*parameters, keys, inside);
  }
  FaultProcess::Kind& read = process.kinds.emplace_back();
  read.name = name;
  read.parameters = injector::FaultParameters(
      records.readParameters(parameters, where, name, kind->parameters, inside));
  const Node* const weight = parameters == nullptr ? nullptr : parameters->find(weightSpec().name);
  if (weight == nullptr) return;
  read.weight = static_cast<int>(std::get<std::int64_t>(
      records.readScalar(*weight, weightSpec(), joinPath(inside, weightSpec().name))));
}

void readKinds(const Node& node, const std::string& path, Findings& findings,
               FaultProcess& process) {
  const Node* const kinds = node.find("kinds");
  if (kinds == nullptr) return;  // told already
  const bool listed = kinds->kind == Node::Kind::kList && !kinds->items.empty();
  if (!listed || kinds->items.size() > kMostElements) {
    findings.addAt(path, kinds->where,
                   fmt::format("kinds: a list of 1 to {} kinds of faults is expected, not {}; "
                               "possible are {}",
                               kMostElements, describe(*kinds), join(possibleKinds(), ", ")));
    return;
  }
  for (std::size_t i = 0; i < kinds->items.size(); ++i) {
    readKind(kinds->items[i], fmt::format("{}.{}", path, i), findings, process);
  }
}

/// The times that `record` ("failures" or "repairs") describes.
Lifetime lifetimeOf(const Parameters& values, const std::string& record) {
  Lifetime lifetime;
  const std::string& kind = values.get<std::string>(record + ".distribution");
  using enum Lifetime::Kind;
  for (const Lifetime::Kind candidate : {kExponential, kWeibull, kLognormal, kConstant}) {
    if (name(candidate) == kind) lifetime.kind = candidate;
  }
  lifetime.shape = values.get<double>(record + ".shape");
  lifetime.sigma = values.get<double>(record + ".sigma");
  return lifetime;
}

/// A key that another distribution than the one that was chosen has.
void refuseIdle(const Node& node, const std::string& path, const std::string& record,
                const Lifetime& lifetime, Findings& findings) {
  const Node* const times = node.find(record);
  if (times == nullptr || !findings.usable({joinPath(joinPath(path, record), "distribution")})) {
    return;
  }
  const std::pair<std::string_view, Lifetime::Kind> keys[] = {
      {"shape", Lifetime::Kind::kWeibull}, {"sigma", Lifetime::Kind::kLognormal}};
  for (const auto& [key, kind] : keys) {
    const Node* const found = times->find(key);
    if (found == nullptr || kind == lifetime.kind) continue;
    findings.add(found->where, fmt::format("{}: only with 'distribution: {}', and this one is {}",
                                           key, name(kind), name(lifetime.kind)));
  }
}

std::vector<int> readPlaces(const Node& node, std::string_view key, const std::string& path,
                            Findings& findings) {
  std::vector<int> places;
  RecordReader records(findings);
  for (const ParameterValue& value : records.readList(&node, processTable(), key, path)) {
    places.push_back(static_cast<int>(std::get<std::int64_t>(value)));
  }
  return places;
}

void readMtbf(const Node& node, const Parameters& values, const std::string& path,
              Findings& findings, FaultProcess& process) {
  const Node* const rate = node.find("failures_per_hour");
  const Node* const mtbf = node.find("mtbf");
  if (mtbf != nullptr && rate != nullptr) {
    findings.addAt(joinPath(path, "mtbf"), rate->where,
                   "mtbf and failures_per_hour exclude each other");
  } else if (mtbf != nullptr) {
    process.failures.mean = values.get<Duration>("mtbf");
  } else if (rate != nullptr) {
    const double hours = 1 / std::max(values.get<double>("failures_per_hour"), 1e-6);
    process.failures.mean =
        std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(hours * 3600));
  } else {
    findings.addAt(joinPath(path, "mtbf"), node.where,
                   fmt::format("'{}' needs the key 'mtbf', like 'mtbf: 2h', or "
                               "'failures_per_hour'",
                               path));
  }
}

}  // namespace

FaultProcess readProcess(const Node& node, const std::string& path, Findings& findings) {
  FaultProcess process;
  Parameters values;
  RecordReader(findings).read(&node, node.where, processTable(), path, values);
  if (node.kind != Node::Kind::kMap) return process;
  process.per = values.get<std::string>("per") == "rail" ? FaultProcess::Element::kRail
                                                         : FaultProcess::Element::kNic;
  process.failures = lifetimeOf(values, "failures");
  process.repairs = lifetimeOf(values, "repairs");
  refuseIdle(node, path, "failures", process.failures, findings);
  refuseIdle(node, path, "repairs", process.repairs, findings);
  readMtbf(node, values, path, findings, process);
  process.repairs.mean = values.get<Duration>("mttr");
  process.accelerate = values.get<double>("accelerate");
  process.nodes = readPlaces(node, "nodes", path, findings);
  process.rails = readPlaces(node, "rails", path, findings);
  process.atMost = integer(values, "at_most");
  process.spareRails = integer(values, "spare_rails");
  process.rest = values.get<Duration>("rest");
  process.shortest = values.get<Duration>("shortest");
  process.length = values.get<Duration>("for");
  readKinds(node, joinPath(path, "kinds"), findings, process);
  return process;
}

}  // namespace faultline::scenario
