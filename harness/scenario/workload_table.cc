#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "harness/scenario/language_table.h"
#include "harness/scenario/table_rows.h"
#include "harness/scenario/workload_kind.h"

// The keys of `workload`: those of all, and what each kind adds.
namespace faultline::scenario {
namespace {

using namespace rows;

/// What the key `kind` means, in few words.
const std::string& kindsInWords() {
  static const std::string kWords = [] {
    std::string words;
    for (const WorkloadKind* const kind : workloadKinds()) {
      words += fmt::format("{}{}: {}", words.empty() ? "" : "; ", kind->name, kind->brief);
    }
    return words;
  }();
  return kWords;
}

std::vector<Field> workloadFields() {
  std::vector<Field> fields{
      Field{choice("kind", "", workloadKindNames(), kindsInWords()), Shape::kScalar, true},
      Field{number("iterations", "60", 1, kMostIterations,
                   "iterations that are measured; of 'collective': calls of each combination, each "
                   "of which is an iteration")},
      Field{number("warmup_iterations", "5", 0, kMostIterations,
                   "iterations before the clock starts; the measure of a normal one for 'during'")},
      Field{duration("time", "", kMillisecond,
                     "the run ends with the iteration in which this time is over, also when some "
                     "of 'iterations' are left")},
  };
  for (const WorkloadKind* const kind : workloadKinds()) {
    if (kind->fields != nullptr) std::ranges::copy(kind->fields(), std::back_inserter(fields));
  }
  return fields;
}

}  // namespace

const Record& workloadTable() {
  static const std::vector<Field> kFields = workloadFields();
  static const Record kWorkload{"What the ranks do.", kFields};
  return kWorkload;
}

}  // namespace faultline::scenario
