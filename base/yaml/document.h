#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// YAML text as a tree that knows where everything stands: of scenarios, and of policies. A small
/// subset on purpose: one document of mappings, lists and scalars; no anchors, aliases, tags. The
/// tree is built from yaml-cpp's events rather than its nodes, so that limits hold while parsing
/// and duplicate keys are seen.
namespace faultline::yaml {

/// A place in the input. Line and column start at 1; 0: unknown.
struct Location {
  int source = 0;  ///< 0: the file; n: the n-th override
  int line = 0;
  int column = 0;
};

/// A mistake before it is rendered with its source's name.
struct Problem {
  Location where;
  std::string message;
};

struct Entry;

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string text;     ///< kScalar
  bool quoted = false;  ///< kScalar: written in quotes or as a block, so certainly text
  Location where;
  std::vector<Node> items;     ///< kList
  std::vector<Entry> entries;  ///< kMap, in the order of the file; keys are unique

  /// The value of a key, or null; for anything but a kMap: null.
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
};

struct Entry {
  std::string key;
  Location where;  ///< of the key
  Node value;
};

/// "a list", "a mapping", "nothing", "'text'", for messages.
std::string describe(const Node& node);

/// Where `path` ("faults.1.target.rail") stands; for parts that are not in the document, where
/// their nearest ancestor stands.
Location locate(const Node& root, std::string_view path);

struct Document {
  Node root;
  std::vector<Problem> problems;  ///< when not empty, the tree may be incomplete
};

/// Limits of what is read at all.
inline constexpr std::size_t kMaximumDepth = 16;
inline constexpr std::size_t kMaximumNodes = 10'000;

/// What the text is to be, in the words of messages.
struct Wanted {
  std::string_view what;  ///< "scenario"
  std::string_view help;  ///< where to look when there is nothing in it
  std::size_t mostBytes;
};

/// Parses `text`; `source` is put into all locations. Never throws, and bounds depth and size
/// before it builds anything.
Document parseDocument(std::string_view text, int source, const Wanted& wanted);

}  // namespace faultline::yaml
