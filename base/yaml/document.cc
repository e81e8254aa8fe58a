#include "base/yaml/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <sstream>
#include <utility>

#include "base/yaml/text_check.h"

namespace faultline::yaml {
namespace {

/// An open bracket looks like the beginning of a key to yaml-cpp.
constexpr const char* kBadKey =
    "a key must be a word, not a list, a mapping or nothing (or a bracket is not closed)";

/// Thrown out of the event handler to stop the parser; never leaves this file.
struct Stop {
  Location where;
  std::string message;
};

class Builder final : public YAML::EventHandler {
 public:
  Builder(int source, std::string_view what) : source_(source), what_(what) {}

  Document take() && { return std::move(document_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuseAnchor(mark, anchor);
    value(make(Node::Kind::kNull, mark));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Stop{at(mark),
               fmt::format("aliases (*name) are not used in {}: write the value again", many())};
  }

  void OnAnchor(const YAML::Mark& mark, const std::string&) override { refuseAnchor(mark, 1); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuseAnchor(mark, anchor);
    refuseTag(mark, tag);
    if (!open_.empty() && open_.back().node.kind == Node::Kind::kMap && !open_.back().key) {
      countNode(mark);
      open_.back().key = Entry{text, at(mark), {}};
      return;
    }
    Node node = make(Node::Kind::kScalar, mark);
    node.text = text;
    node.quoted = tag == "!";  // what yaml-cpp calls every scalar that is not plain
    value(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(Node::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(Node::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    std::optional<Entry> key;  ///< of a kMap: read, and its value is still to come
  };

  /// "scenarios", "policies".
  std::string many() const {
    return what_.ends_with('y') ? fmt::format("{}ies", what_.substr(0, what_.size() - 1))
                                : fmt::format("{}s", what_);
  }

  Location at(const YAML::Mark& mark) const { return {source_, mark.line + 1, mark.column + 1}; }

  void refuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor == 0) return;
    throw Stop{at(mark), fmt::format("anchors (&name) are not used in {}: remove it", many())};
  }

  void refuseTag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw Stop{at(mark), fmt::format("tags (!name) are not used in {}: remove it", many())};
  }

  void countNode(const YAML::Mark& mark) {
    if (++nodes_ <= kMaximumNodes) return;
    throw Stop{at(mark), fmt::format("more than {} values: this is no {}", kMaximumNodes, what_)};
  }

  Node make(Node::Kind kind, const YAML::Mark& mark) {
    countNode(mark);
    Node node;
    node.kind = kind;
    node.where = at(mark);
    return node;
  }

  void start(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor) {
    refuseAnchor(mark, anchor);
    refuseTag(mark, tag);
    refuseAsKey(mark);
    if (open_.size() >= kMaximumDepth) {
      throw Stop{at(mark),
                 fmt::format("nested deeper than {} levels: this is no {}", kMaximumDepth, what_)};
    }
    open_.push_back({make(kind, mark), std::nullopt});
  }

  void refuseAsKey(const YAML::Mark& mark) const {
    if (open_.empty() || open_.back().node.kind != Node::Kind::kMap || open_.back().key) return;
    throw Stop{at(mark), kBadKey};
  }

  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    put(std::move(node));
  }

  void value(Node node) {
    if (!open_.empty() && open_.back().node.kind == Node::Kind::kMap && !open_.back().key) {
      throw Stop{node.where, kBadKey};
    }
    put(std::move(node));
  }

  /// Hangs a finished node into what is open.
  void put(Node node) {
    if (open_.empty()) {
      document_.root = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::kList) {
      parent.node.items.push_back(std::move(node));
      return;
    }
    Entry entry = std::move(*parent.key);
    parent.key.reset();
    for (const Entry& earlier : parent.node.entries) {
      if (earlier.key != entry.key) continue;
      document_.problems.push_back(
          {entry.where, fmt::format("duplicate key '{}': it is already in line {}", entry.key,
                                    earlier.where.line)});
      return;
    }
    // yaml-cpp puts a missing value where the next thing stands, perhaps lines below.
    if (node.kind == Node::Kind::kNull) node.where = entry.where;
    entry.value = std::move(node);
    parent.node.entries.push_back(std::move(entry));
  }

  int source_;
  std::string_view what_;
  std::size_t nodes_ = 0;
  std::vector<Open> open_;
  Document document_;
};

/// A later document of the same stream: none may hold anything.
class RefuseAnything final : public YAML::EventHandler {
 public:
  explicit RefuseAnything(std::string_view what) : what_(what) {}
  void OnDocumentStart(const YAML::Mark& mark) override {
    throw Stop{{0, mark.line + 1, mark.column + 1},
               fmt::format("a second document begins here: a file holds one {}", what_)};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  std::string_view what_;
};

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return fmt::format("'{}'", shortened(node.text));
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a mapping";
  }
  return "something";
}

Location locate(const Node& root, std::string_view path) {
  const Node* node = &root;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view segment = path.substr(0, dot);
    path.remove_prefix(std::min(dot + 1, path.size()));
    const Node* next = node->find(segment);
    if (next == nullptr && node->kind == Node::Kind::kList) {
      std::size_t index = 0;
      const auto [end, error] =
          std::from_chars(segment.data(), segment.data() + segment.size(), index);
      if (error == std::errc() && index < node->items.size()) next = &node->items[index];
    }
    if (next == nullptr) break;
    node = next;
  }
  return node->where;
}

Document parseDocument(std::string_view text, int source, const Wanted& wanted) {
  if (std::optional<Problem> problem = checkText(text, source, wanted)) return {{}, {*problem}};
  Builder builder(source, wanted.what);
  const auto stopped = [&](Location where, std::string message) {
    Document document = std::move(builder).take();
    where.source = source;
    document.problems.push_back({where, std::move(message)});
    return document;
  };
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    RefuseAnything rest(wanted.what);
    parser.HandleNextDocument(rest);
  } catch (const Stop& stop) {
    return stopped(stop.where, stop.message);
  } catch (const YAML::Exception& error) {
    const bool known = error.mark.line >= 0;
    return stopped({source, known ? error.mark.line + 1 : 0, known ? error.mark.column + 1 : 0},
                   "not YAML: " + error.msg);
  } catch (const std::exception& error) {
    return stopped({source, 0, 0}, fmt::format("not YAML: {}", error.what()));
  }
  Document document = std::move(builder).take();
  if (document.root.where.line == 0) document.root.where = {source, 1, 1};  // only comments
  return document;
}

}  // namespace faultline::yaml
