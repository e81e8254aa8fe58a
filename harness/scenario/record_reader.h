#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/parameter.h"
#include "harness/scenario/document.h"
#include "harness/scenario/findings.h"
#include "harness/scenario/language_table.h"

namespace faultline::scenario {

/// Of the lists of a scenario.
inline constexpr std::size_t kMostElements = 100;

/// Reads what tables describe: knows tables, nodes and findings, and nothing of scenarios.
class RecordReader {
 public:
  explicit RecordReader(Findings& findings) : findings_(findings) {}

  /// Reads all scalars of `record` and of the records inside it into `values`, named by their path
  /// below it ("gradient.size"). Missing ones get their default; those that are wrong, or required
  /// and missing, are reported and get a stand-in, so that values are complete; those that are
  /// optional and missing stay out. `node` is null when the whole mapping is missing. `extra` are
  /// keys that somebody else reads. `path` is where the record stands ("workload", "" for the top).
  void read(const Node* node, Location where, const Record& record, const std::string& path,
            Parameters& values, std::span<const ParameterSpec> extra = {});

  /// One value by its row.
  ParameterValue readScalar(const Node& node, const ParameterSpec& spec, const std::string& path);

  /// Reads the options of `specs` from the mapping `node` (null: all defaults).
  Parameters readParameters(const Node* node, Location where, std::string_view owner,
                            std::span<const ParameterSpec> specs, const std::string& path);

  /// A Shape::kList of `record`, read from the mapping `node` (null: it is missing): its default
  /// where it is missing, and at least one value whatever is wrong; without a default none. `most`:
  /// so many values are possible.
  std::vector<ParameterValue> readList(const Node* node, const Record& record, std::string_view key,
                                       const std::string& path, std::size_t most = kMostElements);

  /// A Shape::kWords: any scalars, as they are written. None, with a message, if it is no list.
  std::vector<std::string> readWords(const Node& node, std::string_view key,
                                     const std::string& path);

  /// A Shape::kTexts: names that a variable of the environment can have, and any scalars.
  std::map<std::string, std::string> readTexts(const Node& node, std::string_view key,
                                               const std::string& path);

  /// Reports keys of `node` that are in none of the lists.
  void refuseUnknownKeys(const Node& node, std::span<const std::string_view> known,
                         const std::string& path);

 private:
  void readInto(const Node* node, Location where, const Record& record, const std::string& path,
                const std::string& prefix, Parameters& values,
                std::span<const ParameterSpec> extra);

  Findings& findings_;
};

/// The integer of this name, whose row bounds it to what an int holds.
inline int integer(const Parameters& values, std::string_view name) {
  return static_cast<int>(values.get<std::int64_t>(name));
}

/// "workload" + "kind" -> "workload.kind"; "" + "kind" -> "kind".
std::string joinPath(const std::string& path, std::string_view key);

}  // namespace faultline::scenario
