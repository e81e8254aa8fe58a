#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/parameter.h"

/// The scenario language as tables. The reader, the JSON Schema and the documentation are all made
/// from them (and from the tables of faults and strategies), so that they cannot drift.
namespace faultline::scenario {

struct Record;

/// What a key's value looks like.
enum class Shape {
  kScalar,        ///< one value, as `Field::spec` says
  kRecord,        ///< a mapping with the keys of `Field::record`
  kCompute,       ///< a duration, or a mapping {burn: duration}
  kStrategies,    ///< a list of names, or of mappings {name: {options}}
  kFaults,        ///< a list of mappings: kind, its parameters, and the keys of `faultTable()`
  kSteps,         ///< the same, and the keys of `stepTable()`
  kRecords,       ///< a list of mappings with the keys of `Field::record`
  kFaultKinds,    ///< a list of names of faults, or of mappings {name: {parameters}}
  kExpectations,  ///< a list of texts: metric, comparison, value
  kCard,          ///< a name that `Field::spec` has as a choice, or a mapping as of kRecord
  kList,          ///< one value as `Field::spec` says, or a list of such
  kWords,         ///< a list of texts: a program and its arguments
  kTexts,         ///< a mapping of names to texts
  kRails,         ///< a number as `Field::spec` says, `auto`, names, or names by node
  kMetrics,       ///< a mapping of names to mappings with the keys of `Field::record`
};

/// One key. A kScalar that has no default and is not required is simply absent.
struct Field {
  ParameterSpec
      spec;  ///< name, type, default, bounds and meaning; of other shapes name and meaning
  Shape shape = Shape::kScalar;
  bool required = false;
  const Record* record = nullptr;  ///< of kRecord, kRecords, kSteps, kCard and kMetrics
};

/// A mapping and its keys.
struct Record {
  std::string_view meaning;
  std::span<const Field> fields;
};

/// The whole scenario.
const Record& scenarioTable();

/// Its part `workload`: the keys of all kinds (workload_kind.h).
const Record& workloadTable();

/// What every fault has besides the parameters of its kind.
const Record& faultTable();

/// What a fault acts on.
const Record& targetTable();
/// What a fault of a sequence has besides.
const Record& stepTable();
/// An element of `sequences`, and of `fault_processes`.
const Record& sequenceTable();
const Record& processTable();

/// What a kind of fault of a process has besides its parameters.
ParameterSpec weightSpec();

/// The row behind a fault's `kind`, with all kinds as choices.
ParameterSpec faultKindSpec();

/// Of kRails: whatever is found.
inline constexpr std::string_view kAutomatic = "auto";

/// The key of the second form of kCompute.
inline constexpr std::string_view kBurn = "burn";

/// As the choice of an enumeration: YAML's own null, which needs no quotes there.
inline constexpr std::string_view kNullWord = "null";

/// Two lines about one key, more if it is a mapping: `path`, type, default, range, and meaning.
std::string describeField(const Field& field, const std::string& path);

/// The page of `faultline describe scenario`, also kept in docs/scenario.md.
std::string describeScenario();

}  // namespace faultline::scenario
