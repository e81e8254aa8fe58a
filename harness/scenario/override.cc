#include "harness/scenario/override.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/text.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/document.h"

namespace faultline::scenario {
namespace {

constexpr std::size_t kLongestPath = 200;

Node emptyMap(int source) {
  Node node;
  node.kind = Node::Kind::kMap;
  node.where = {source, 0, 0};
  return node;
}

/// The value of `key` in the mapping, made when it is missing.
Node& member(Node& map, std::string_view key, int source) {
  if (Node* found = map.find(key)) return *found;
  map.entries.push_back({std::string(key), {source, 0, 0}, {}});
  return map.entries.back().value;
}

/// Whether the item is {strategy: {as: name, ...}}.
bool isCalled(const Node& item, std::string_view name) {
  if (item.entries.size() != 1) return false;
  const Node* const row = item.entries.front().value.find(baseline::rowNameSpec().name);
  return row != nullptr && row->text == name;
}

/// The list's item that `segment` means: its index, its row's name, or the name that it is about. A
/// bare name becomes {name: {}}, so that options can be put into it.
Node* item(Node& list, std::string_view segment, int source) {
  std::size_t index = 0;
  const char* const last = segment.data() + segment.size();
  const auto [end, error] = std::from_chars(segment.data(), last, index);
  if (error == std::errc() && end == last) {
    return index < list.items.size() ? &list.items[index] : nullptr;
  }
  for (Node& candidate : list.items) {
    if (candidate.kind == Node::Kind::kScalar && candidate.text == segment) {
      const Location where = candidate.where;
      candidate = emptyMap(source);
      candidate.where = where;
      candidate.entries.push_back({std::string(segment), where, emptyMap(source)});
    }
    if (isCalled(candidate, segment)) return &candidate.entries.front().value;
    Node* const found = candidate.find(segment);
    if (found != nullptr && found->find(baseline::rowNameSpec().name) == nullptr) return found;
  }
  return nullptr;
}

/// " (did you mean 'hot_repair'?)" of the list's names, or "".
std::string elementMeant(const Node& list, std::string_view segment) {
  std::vector<std::string_view> names;
  for (const Node& item : list.items) {
    if (item.kind == Node::Kind::kScalar) names.emplace_back(item.text);
    if (item.entries.size() == 1) names.emplace_back(item.entries.front().key);
  }
  return didYouMean(segment, names);
}

}  // namespace

std::optional<Problem> applyOverride(Node& root, std::string_view assignment, int source) {
  const Location where{source, 0, 0};
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals > kLongestPath) {
    return Problem{where, "is not path=value, like workload.iterations=10"};
  }
  const std::string dotted = fmt::format(".{}.", assignment.substr(0, equals));
  if (dotted.find("..") != std::string::npos) {
    return Problem{where, "its path has an empty part"};
  }
  Document parsed = parseDocument(assignment.substr(equals + 1), source);
  if (!parsed.problems.empty()) {
    return Problem{where, "its value: " + parsed.problems.front().message};
  }

  std::string_view path = assignment.substr(0, equals);
  Node* node = &root;
  std::string walked;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view segment = path.substr(0, dot);
    path.remove_prefix(std::min(dot + 1, path.size()));
    const std::string owner = walked.empty() ? "the scenario" : fmt::format("'{}'", walked);
    if (node->kind == Node::Kind::kNull) *node = emptyMap(source);
    if (node->kind == Node::Kind::kMap) {
      node = &member(*node, segment, source);
    } else if (node->kind == Node::Kind::kList) {
      Node* const found = item(*node, segment, source);
      if (found == nullptr) {
        return Problem{where, fmt::format("{} has no element '{}'{}: it has {}, counted from 0",
                                          owner, shortened(segment), elementMeant(*node, segment),
                                          node->items.size())};
      }
      node = found;
    } else {
      return Problem{where, fmt::format("{} is a single value and has no part '{}'", owner,
                                        shortened(segment))};
    }
    walked += (walked.empty() ? "" : ".") + std::string(segment);
  }
  *node = std::move(parsed.root);
  return std::nullopt;
}

}  // namespace faultline::scenario
