#include "harness/workload/command/section/table.h"

#include <array>

#include "harness/command/command.h"
#include "harness/scenario/table_rows.h"

namespace faultline::scenario {
namespace {

using namespace rows;

constexpr double kMostProcesses = 64;
constexpr double kLargestExit = 255;

constexpr std::array kProgramMetricFields{
    Field{labelled("regex",
                   "regular expression (ECMAScript, without back references and look-arounds, 1024 "
                   "bytes at most) with one group, around the number; it is looked for in each "
                   "line that the processes print, in the order of ranks, standard "
                   "output before errors; either this or 'json'")},
    Field{labelled("json",
                   "file with one JSON document, that the program writes into its output folder; "
                   "stdout.txt there is what it prints; every process that has the file counts; "
                   "either this or 'regex'")},
    Field{labelled("path",
                   "where the number is in 'json': keys and indices with dots between, like "
                   "end.sum_received.bits_per_second")},
    Field{labelled("unit", "for the report, like GB/s")},
    Field{choice("take", "last", command::kTakeNames, "which counts, when there are several")},
};
constexpr Record kProgramMetric{"One number that the programs tell.", kProgramMetricFields};

constexpr std::array kCommandFields{
    Field{labelled("run",
                   "program and arguments, without a shell: write [sh, -c, 'text'] for one; "
                   "placeholders like {rank} are replaced"),
          Shape::kWords, true},
    Field{number("per_node", "", 1, kMostProcesses,
                 "processes on each node, cluster.ranks_per_node by default")},
    Field{number("nodes", "", 0, kMostNodes - 1, "nodes that run it, all by default"),
          Shape::kList},
    Field{labelled("env",
                   "variables of the environment, besides those that are always there; "
                   "placeholders are replaced"),
          Shape::kTexts},
    Field{labelled("workdir",
                   "where the program starts; by default where faultline did; "
                   "placeholders are replaced")},
    Field{duration("time_limit", "", kMillisecond,
                   "longest time of one run, limits.deadline by default: then SIGTERM to all "
                   "processes, and after 2 s SIGKILL")},
    Field{number("success_exit", "0", 0, kLargestExit,
                 "exit codes that mean success; any other one ends the run"),
          Shape::kList},
    Field{labelled("progress",
                   "file in the output folder into which the program writes the number of each "
                   "iteration, from 0, when it begins: a line of its own, appended or instead of "
                   "the one before")},
    Field{labelled("metrics", "numbers that the programs tell, by name"), Shape::kMetrics, false,
          &kProgramMetric},
    Field{{"throughput", Type::kName, "",
           "the metric that is the work per second (more is better); without it throughput is runs "
           "per second"}},
};
constexpr Record kCommand{"What 'command' starts on the nodes.", kCommandFields};

}  // namespace

const Record& commandTable() { return kCommand; }
const Record& programMetricTable() { return kProgramMetric; }

std::span<const Field> commandFields() {
  static constexpr std::array kFields{
      Field{labelled("command", kCommand.meaning), Shape::kRecord, false, &kCommand},
  };
  return kFields;
}

}  // namespace faultline::scenario
