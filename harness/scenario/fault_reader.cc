#include "harness/scenario/fault_reader.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/text.h"
#include "harness/scenario/language_table.h"
#include "harness/scenario/record_reader.h"
#include "injector/faults/registry.h"

namespace faultline::scenario {
namespace {

std::string_view whyNotWholeRails(injector::TargetKind target) {
  switch (target) {
    case injector::TargetKind::kLink:
      return "what proves it are the other ports of the same switch";
    case injector::TargetKind::kRdma:
      return "it acts on one node's device: write {node: 1, rail: 0}";
    default:
      return "it does not act on links";
  }
}

class FaultReader {
 public:
  explicit FaultReader(Findings& findings) : findings_(findings), records_(findings) {}

  /// `place`: in its sequence.
  Fault read(const Node& node, const std::string& path, std::optional<std::size_t> place) {
    Fault fault;
    if (node.kind != Node::Kind::kMap) {
      findings_.addAt(path, node.where,
                      fmt::format("a fault is a mapping with a kind, not {}", describe(node)));
      return fault;
    }
    const ParameterSpec kind_spec = faultKindSpec();
    const Node* const kind_node = node.find(kind_spec.name);
    const injector::FaultKind* kind = nullptr;
    const std::string kind_path = joinPath(path, kind_spec.name);
    if (kind_node == nullptr) {
      findings_.addAt(
          kind_path, node.where,
          fmt::format("'{}' needs the key 'kind': {}", path, join(kind_spec.choices, ", ")));
    } else {
      fault.kind = std::get<std::string>(records_.readScalar(*kind_node, kind_spec, kind_path));
      // A kind that is misspelt is read as the one that was meant, so that its other mistakes show.
      if (!findings_.usable({kind_path})) {
        fault.kind = closestWord(kind_node->text, kind_spec.choices);
      }
      kind = injector::findFaultKind(fault.kind);
    }
    if (kind == nullptr) {
      readWithoutKind(node, path, fault, place);
      return fault;
    }

    std::vector<ParameterSpec> extra(kind->parameters.begin(), kind->parameters.end());
    extra.push_back(kind_spec);
    if (place) {
      for (const Field& field : stepTable().fields) extra.push_back(field.spec);
    }
    Parameters values;
    records_.read(&node, node.where, faultTable(), path, values, extra);
    fault.parameters = injector::FaultParameters(
        records_.readParameters(&node, node.where, kind->name, kind->parameters, path));
    readTarget(node, values, path, *kind, fault);
    if (place) refuseRepetition(node);
    if (place && *place > 0) {
      readAfter(node, path, fault);
    } else {
      refuseAfter(node, place.has_value());
      readTrigger(node, values, path, fault);
    }
    readExtent(node, values, path, fault);
    if (!place) readRepetition(node, values, path, fault);
    return fault;
  }

 private:
  /// What every fault has is looked at although the kind is not known; which parameters it may have
  /// is not, and so keys that any kind knows pass.
  void readWithoutKind(const Node& node, const std::string& path, Fault& fault,
                       std::optional<std::size_t> place) {
    std::vector<ParameterSpec> extra{faultKindSpec()};
    if (place) {
      for (const Field& field : stepTable().fields) extra.push_back(field.spec);
    }
    for (const injector::FaultKind& kind : injector::faultKinds()) {
      extra.insert(extra.end(), kind.parameters.begin(), kind.parameters.end());
    }
    Parameters values;
    records_.read(&node, node.where, faultTable(), path, values, extra);
    if (values.has("target.node")) {
      fault.target = Target{.node = integer(values, "target.node")};
      if (values.has("target.rail")) {
        fault.target->rail = integer(values, "target.rail");
      } else {
        fault.target->part = Part::kProcesses;
      }
    }
    if (place && *place > 0) return;
    readTrigger(node, values, path, fault);
    readExtent(node, values, path, fault);
  }

  void readTarget(const Node& node, const Parameters& values, const std::string& path,
                  const injector::FaultKind& kind, Fault& fault) {
    const bool processes = kind.target == injector::TargetKind::kProcesses;
    if (values.has("target.rail_group")) return readGroup(node, values, path, kind, fault);
    if (values.has("target.rank")) return readRank(node, values, path, kind, fault);
    if (!values.has("target.node")) {
      const Node* const target = node.find("target");
      if (kind.target == injector::TargetKind::kNone && target == nullptr) return;
      if (!findings_.usable({joinPath(path, "target")})) return;
      findings_.add(target == nullptr ? node.where : target->where,
                    target == nullptr
                        ? fmt::format("'{}' needs the key 'target', like {}", path,
                                      processes ? "{node: 1}" : "{node: 1, rail: 0}")
                        : fmt::format("'{}' needs the key 'node': the node, counted from 0; or "
                                      "'rail_group': a rail at all nodes",
                                      joinPath(path, "target")));
      return;
    }
    const Node& target = *node.find("target");
    const Node* const rail = target.find("rail");
    const Node* const network = target.find("network");
    const std::string target_path = joinPath(path, "target");
    fault.target = Target{.node = integer(values, "target.node")};
    readPeer(target, values, target_path, kind, *fault.target);
    if (processes) {
      fault.target->part = Part::kProcesses;
      const Node* const extra = rail != nullptr ? rail : network;
      if (extra == nullptr) return;
      findings_.add(extra->where,
                    fmt::format("{} acts on the processes of a node, not on a link: write "
                                "'target: {{node: 1}}'",
                                kind.name));
    } else if (values.get<std::string>("target.network") == "management") {
      fault.target->part = Part::kManagement;
      if (rail == nullptr) return;
      findings_.add(rail->where, "rail and 'network: management' exclude each other");
    } else if (rail != nullptr) {
      fault.target->rail = integer(values, "target.rail");
    } else if (findings_.usable({target_path})) {
      findings_.addAt(joinPath(target_path, "rail"), target.where,
                      fmt::format("'{}' needs the key 'rail': its rail, counted from 0, or "
                                  "'network: management'",
                                  target_path));
    }
  }

  /// The processes of one rank.
  void readRank(const Node& node, const Parameters& values, const std::string& path,
                const injector::FaultKind& kind, Fault& fault) {
    const Node& target = *node.find("target");
    const std::string target_path = joinPath(path, "target");
    fault.target = Target{.part = Part::kProcesses, .rank = integer(values, "target.rank")};
    for (const std::string_view key : {"node", "rail", "peer", "network"}) {
      const Node* const other = target.find(key);
      if (other == nullptr) continue;
      findings_.addAt(target_path, other->where,
                      fmt::format("{} and 'rank' exclude each other: a rank has its node", key));
    }
    if (kind.target == injector::TargetKind::kProcesses) return;
    findings_.addAt(joinPath(target_path, "rank"), target.find("rank")->where,
                    fmt::format("rank: {} does not act on processes", kind.name));
  }

  /// The other end of a path.
  void readPeer(const Node& target, const Parameters& values, const std::string& target_path,
                const injector::FaultKind& kind, Target& read) {
    const Node* const peer = target.find("peer");
    if (peer != nullptr && !kind.between) {
      findings_.add(peer->where,
                    fmt::format("peer: {} does not act on the path between two nodes", kind.name));
    } else if (peer != nullptr && values.has("target.peer")) {
      read.peer = integer(values, "target.peer");
    } else if (kind.between && findings_.usable({target_path})) {
      findings_.addAt(joinPath(target_path, "peer"), target.where,
                      fmt::format("'{}' needs the key 'peer': the other node, counted from 0, like "
                                  "{{node: 1, rail: 0, peer: 2}}",
                                  target_path));
    }
    const Node* const network = target.find("network");
    if (kind.between && network != nullptr) {
      findings_.add(network->where, fmt::format("network: {} acts on rails", kind.name));
    }
  }

  /// A rail of several nodes.
  void readGroup(const Node& node, const Parameters& values, const std::string& path,
                 const injector::FaultKind& kind, Fault& fault) {
    const Node& target = *node.find("target");
    const std::string target_path = joinPath(path, "target");
    fault.target = Target{.rail = integer(values, "target.rail_group"), .part = Part::kRailGroup};
    for (const std::string_view key : {"node", "rank", "rail", "peer", "network"}) {
      const Node* const other = target.find(key);
      if (other == nullptr) continue;
      findings_.addAt(target_path, other->where,
                      fmt::format("{} and 'rail_group' exclude each other; 'nodes' names some of "
                                  "the rail's nodes",
                                  key));
    }
    if (!kind.ofWholeRails) {
      findings_.addAt(joinPath(target_path, "rail_group"), target.find("rail_group")->where,
                      fmt::format("rail_group: {} cannot strike a whole rail: {}", kind.name,
                                  whyNotWholeRails(kind.target)));
    }
    for (const ParameterValue& value :
         records_.readList(&target, targetTable(), "nodes", target_path)) {
      fault.target->nodes.push_back(static_cast<int>(std::get<std::int64_t>(value)));
    }
  }

  /// In a sequence `repeat` repeats.
  void refuseRepetition(const Node& node) {
    for (const std::string_view key : {"times", "every", "before"}) {
      const Node* const found = node.find(key);
      if (found == nullptr) continue;
      findings_.add(found->where, fmt::format("{}: not in a sequence, which begins after the start "
                                              "and is repeated as a whole: 'repeat'",
                                              key));
    }
  }

  /// The first of a sequence has a moment of its own.
  void refuseAfter(const Node& node, bool sequence) {
    const Node* const after = node.find("after");
    if (after == nullptr || !sequence) return;
    findings_.add(after->where,
                  "after: nothing is before the first fault of a sequence: write 'at' or 'during'");
  }

  void readAfter(const Node& node, const std::string& path, Fault& fault) {
    for (const std::string_view key : {"at", "during"}) {
      const Node* const found = node.find(key);
      if (found == nullptr) continue;
      findings_.add(found->where,
                    fmt::format("{}: only the first fault of a sequence has it; the others come "
                                "'after' the one before",
                                key));
    }
    const auto fields = stepTable().fields;
    const Node* const after = node.find("after");
    if (after == nullptr) {
      findings_.addAt(joinPath(path, "after"), node.where,
                      fmt::format("'{}' never strikes: write 'after: 200ms', counted from the end "
                                  "of the fault before",
                                  path));
      return;
    }
    After trigger;
    trigger.delay =
        std::get<Duration>(records_.readScalar(*after, fields[0].spec, joinPath(path, "after")));
    if (const Node* const from = node.find("from")) {
      const auto mark =
          std::get<std::string>(records_.readScalar(*from, fields[1].spec, joinPath(path, "from")));
      trigger.mark = mark == "begin"      ? After::Mark::kBegin
                     : mark == "recovery" ? After::Mark::kRecovery
                                          : After::Mark::kEnd;
    }
    fault.trigger = trigger;
  }

  void readRepetition(const Node& node, const Parameters& values, const std::string& path,
                      Fault& fault) {
    fault.times = integer(values, "times");
    const Node* const times = node.find("times");
    const Node* const every = node.find("every");
    if (every != nullptr) fault.every = values.get<Duration>("every");
    if (fault.times > 1 && every == nullptr) {
      findings_.addAt(joinPath(path, "every"), times->where,
                      "times: say how far apart they are, like 'every: 500ms'");
    } else if (fault.times == 1 && every != nullptr) {
      findings_.add(every->where, "every: only with 'times', how often it strikes");
    } else if (fault.times > 1 && node.find("until") != nullptr) {
      findings_.addAt(joinPath(path, "times"), times->where,
                      "times: a fault that lasts until the end strikes only once");
    }
  }

  void readTrigger(const Node& node, const Parameters& values, const std::string& path,
                   Fault& fault) {
    const Node* const at = node.find("at");
    const Node* const during = node.find("during");
    const Node* const before = node.find("before");
    if (at != nullptr && during != nullptr) {
      findings_.add(during->where,
                    "at and during exclude each other: a fault strikes at one moment");
    } else if (before != nullptr && (at != nullptr || during != nullptr)) {
      findings_.add(before->where, "before excludes at and during: a fault strikes at one moment");
    } else if (before != nullptr && fault.times > 1) {
      findings_.add(before->where, "before: a fault that is there at the start strikes only once");
    } else if (before != nullptr) {
      fault.trigger = BeforeStart{};
    } else if (at == nullptr && during == nullptr) {
      findings_.add(node.where,
                    fmt::format("'{}' never strikes: write 'at: 2s', 'before: start' or 'during: "
                                "{{iteration: 20, progress: 50%}}'",
                                path));
    } else if (at != nullptr) {
      fault.trigger = At{values.get<Duration>("at")};
    } else if (values.has("during.iteration")) {
      constexpr double kPercent = 100;
      fault.trigger = During{integer(values, "during.iteration"),
                             values.get<Percent>("during.progress").value / kPercent};
    }
  }

  void readExtent(const Node& node, const Parameters& values, const std::string& path,
                  Fault& fault) {
    const Node* const until = node.find("until");
    const Node* const duration = node.find("duration");
    if (duration != nullptr && until != nullptr) {
      findings_.add(until->where, "duration and until exclude each other");
    } else if (duration == nullptr && until == nullptr) {
      findings_.add(node.where,
                    fmt::format("'{}' never ends: write 'duration: 2s' or 'until: end'", path));
    } else if (duration != nullptr) {
      fault.duration = values.get<Duration>("duration");
    }
  }

 public:
  Sequence readSequence(const Node& node, const std::string& path) {
    Sequence sequence;
    Parameters values;
    records_.read(&node, node.where, sequenceTable(), path, values);
    if (node.kind != Node::Kind::kMap) return sequence;
    sequence.repeat = integer(values, "repeat");
    sequence.pause = values.get<Duration>("pause");
    const Node* const list = node.find("faults");
    const std::string inside = joinPath(path, "faults");
    if (list == nullptr) return sequence;  // told already
    if (list->kind != Node::Kind::kList || list->items.empty() ||
        list->items.size() > kMostElements) {
      findings_.addAt(inside, list->where,
                      fmt::format("faults: a list of 1 to {} faults is expected, not {}",
                                  kMostElements, describe(*list)));
      return sequence;
    }
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      sequence.faults.push_back(read(list->items[i], fmt::format("{}.{}", inside, i), i));
      checkEnd(list->items, i, sequence, inside);
    }
    return sequence;
  }

 private:
  /// What waits for the end of the fault before it needs that to have one.
  void checkEnd(const std::vector<Node>& items, std::size_t i, const Sequence& sequence,
                const std::string& inside) {
    const Fault& fault = sequence.faults.back();
    const std::string path = fmt::format("{}.{}", inside, i);
    if (!findings_.usable({path})) return;
    if (const Node* const until = items[i].find("until"); until && sequence.repeat > 1) {
      findings_.add(until->where,
                    "until: a fault of a sequence that is repeated must end: write 'duration'");
    }
    const After* const after = std::get_if<After>(&fault.trigger);
    if (after == nullptr || i == 0 || after->mark != After::Mark::kEnd) return;
    if (items[i - 1].find("until") == nullptr) return;
    findings_.add(items[i].where,
                  "the fault before lasts until the end of the run: give it a 'duration', or write "
                  "'from: begin' or 'from: recovery'");
  }

  Findings& findings_;
  RecordReader records_;
};

}  // namespace

Fault readFault(const Node& node, const std::string& path, Findings& findings) {
  return FaultReader(findings).read(node, path, std::nullopt);
}

Sequence readSequence(const Node& node, const std::string& path, Findings& findings) {
  return FaultReader(findings).readSequence(node, path);
}

}  // namespace faultline::scenario
