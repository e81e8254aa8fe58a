#include "harness/scenario/chaos_reader.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "harness/scenario/chaos.h"
#include "harness/scenario/record_reader.h"
#include "harness/scenario/text_check.h"

namespace faultline::scenario {
namespace {

constexpr std::size_t kMostKinds = 100;

std::vector<std::string_view> possibleKinds() {
  std::vector<std::string_view> names;
  for (const injector::FaultKind& kind : injector::faultKinds()) {
    if (canBeRandom(kind)) names.push_back(kind.name);
  }
  return names;
}

void readKind(const Node& node, const std::string& path, Findings& findings, Chaos& chaos) {
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
    records.refuseUnknownKeys(*parameters, keys, inside);
  }
  chaos.kinds.push_back({name, injector::FaultParameters(records.readParameters(
                                   parameters, where, name, kind->parameters, inside))});
}

}  // namespace

std::optional<Chaos> readChaos(const Node& root, const Parameters& values, Findings& findings) {
  if (!values.has("chaos.for")) return std::nullopt;
  Chaos chaos;
  chaos.every = values.get<Duration>("chaos.every");
  chaos.shortest = values.get<Duration>("chaos.shortest");
  chaos.longest = values.get<Duration>("chaos.longest");
  chaos.rest = values.get<Duration>("chaos.rest");
  chaos.spareRails = static_cast<int>(values.get<std::int64_t>("chaos.spare_rails"));
  chaos.length = values.get<Duration>("chaos.for");
  const Node* const kinds = root.find("chaos")->find("kinds");
  const std::string path = "chaos.kinds";
  if (kinds == nullptr) return chaos;  // told already
  const bool listed = kinds->kind == Node::Kind::kList && !kinds->items.empty();
  if (!listed || kinds->items.size() > kMostKinds) {
    findings.addAt(path, kinds->where,
                   fmt::format("kinds: a list of 1 to {} kinds of faults is expected, not {}; "
                               "possible are {}",
                               kMostKinds, describe(*kinds), join(possibleKinds(), ", ")));
    return chaos;
  }
  for (std::size_t i = 0; i < kinds->items.size(); ++i) {
    readKind(kinds->items[i], fmt::format("{}.{}", path, i), findings, chaos);
  }
  return chaos;
}

}  // namespace faultline::scenario
