#include "harness/workload/collective/section/table.h"

#include <array>

#include "harness/scenario/sweep.h"
#include "harness/scenario/table_rows.h"
#include "resilient_ccl/reduction/data_type.h"

namespace faultline::scenario {
namespace {

using namespace rows;

constexpr std::array<std::string_view, 3> kPlaces{"out", "in", "both"};

constexpr double kLargestFactor = 1024;
constexpr ParameterSpec size(std::string_view name, std::string_view fallback,
                             std::string_view meaning) {
  return {name, Type::kSize, fallback, meaning, {}, 1, kLargestGradient};
}

const std::array kCollectiveFields{
    Field{choice("operations", "all_reduce", operationNames(),
                 "what is called: a name, or a list of names"),
          Shape::kList},
    Field{size("sizes", "1MiB",
               "bytes of the larger of a rank's input and output: one, or a list; or 'from' and "
               "'to'"),
          Shape::kList},
    Field{size("from", "", "the smallest of a range of sizes")},
    Field{size("to", "", "the largest of them")},
    Field{number("factor", "2", 2, kLargestFactor, "from one of them to the next")},
    Field{choice("dtypes", "f32", reduction::kDataTypeNames, "types of the elements"),
          Shape::kList},
    Field{choice("ops", "sum", reduction::kReduceOpNames, "operators, of operations that reduce"),
          Shape::kList},
    Field{number("settle_calls", "400", 0, kMostIterations,
                 "while 'auto' is still trying which algorithm is the fastest for a combination, "
                 "it is called up to so many times more, in the warm-up and after that; these "
                 "calls are checked, and are no iterations")},
    Field{choice("place", "out", kPlaces,
                 "out: source and target are different memory; in: the same; both: one after the "
                 "other. all_to_all and send_recv are never in place")},
};
const Record kCollective{"What 'collective' calls: every combination.", kCollectiveFields};

}  // namespace

const Record& collectiveTable() { return kCollective; }

std::span<const Field> collectiveFields() {
  static const std::array kFields{
      Field{labelled("collective", kCollective.meaning), Shape::kRecord, false, &kCollective},
  };
  return kFields;
}

}  // namespace faultline::scenario
