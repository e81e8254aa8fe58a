#include <array>
#include <vector>

#include "harness/scenario/language_table.h"
#include "harness/scenario/table_rows.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

// The keys of `faults`, `sequences` and `fault_processes`.
namespace faultline::scenario {
namespace {

using namespace rows;

constexpr double kMostStrikes = 10'000;

constexpr std::array<std::string_view, 1> kUntil{"end"};
constexpr std::array<std::string_view, 1> kBefore{"start"};
constexpr std::array<std::string_view, 2> kNetworks{"rails", "management"};

constexpr std::array kTargetFields{
    Field{number("node", "", 0, kMostNodes - 1,
                 "the node, counted from 0; either this, 'rank' or 'rail_group'")},
    Field{
        number("rank", "", 0, kMostRanks - 1,
               "only for faults of processes: the rank, counted from 0, with all that its process "
               "has started, instead of all of its node")},
    Field{number("rail", "", 0, kMostRails - 1,
                 "its rail, counted from 0; only for faults of a link")},
    Field{number("peer", "", 0, kMostNodes - 1,
                 "the other node; only for faults of the path between two links")},
    Field{choice("network", "rails", kNetworks,
                 "rails: the link is that of 'rail'; management: the node's link to the management "
                 "network")},
    Field{number("rail_group", "", 0, kMostRails - 1,
                 "a whole rail, as when its switch dies: the links of this rail at all nodes, at "
                 "the same moment")},
    Field{number("nodes", "", 0, kMostNodes - 1, "of 'rail_group': only at these nodes"),
          Shape::kList},
};
constexpr Record kTarget{"What the fault acts on.", kTargetFields};

constexpr std::array kDuringFields{
    Field{
        number(
            "iteration", "", 0, kMostIterations - 1,
            "the iteration, counted from 0; of a server the request, or, where that is over before "
            "'progress', the first one that begins after it and gets so far"),
        Shape::kScalar, true},
    Field{{"progress",
           Type::kPercent,
           "50%",
           "share of a normal iteration's bytes that the target node has moved by then",
           {},
           1,
           99}},
};
constexpr Record kDuring{"Strikes while an iteration communicates.", kDuringFields};

constexpr std::array kFaultFields{
    Field{labelled("target", kTarget.meaning), Shape::kRecord, false, &kTarget},
    Field{duration("at", "", 0,
                   "strikes at this time after the start of the run (all ranks ready, after "
                   "warm-up); either this, 'during' or 'before'")},
    Field{labelled("during",
                   "strikes while an iteration communicates; either this, 'at' or "
                   "'before'"),
          Shape::kRecord, false, &kDuring},
    Field{choice("before", "", kBefore,
                 "start: is there before the ranks are started, and lasts so long after the start "
                 "of the run as 'duration' says; either this, 'at' or 'during'")},
    Field{duration("duration", "", kMillisecond, "how long it lasts; either this or 'until'")},
    Field{choice("until", "", kUntil, "end: lasts until the end of the run")},
    Field{number("times", "1", 1, kMostStrikes,
                 "how often it strikes in one run, undone in between; needs 'every' and "
                 "'duration'")},
    Field{duration("every", "", kMillisecond,
                   "from one strike to the next; with 'during', the next one comes in the first "
                   "iteration that begins after that time, at the same progress")},
};
constexpr Record kFault{"What every fault has besides its kind's own parameters.", kFaultFields};

constexpr std::array<std::string_view, 3> kMarks{"begin", "end", "recovery"};
constexpr std::array kStepFields{
    Field{duration("after", "", 0,
                   "strikes so long after the fault before it; all but the first have it, and no "
                   "other moment")},
    Field{choice("from", "end", kMarks,
                 "of the fault before, what 'after' counts from; recovery: an iteration that began "
                 "after it is over, so that the job goes on")},
};
constexpr Record kStep{"As in 'faults', without 'times' and 'every'; and besides:", kStepFields};

constexpr std::array kSequenceFields{
    Field{labelled("faults", kStep.meaning), Shape::kSteps, true, &kStep},
    Field{number("repeat", "1", 1, kMostStrikes, "so many times, each fault undone in between")},
    Field{duration("pause", "500ms", 0,
                   "from the end of the last fault to the first one again; after it, a first one "
                   "with 'during' comes in the first iteration that begins, at its progress")},
};
constexpr Record kSequence{"Faults one after the other.", kSequenceFields};

constexpr double kLongestMtbf = 1e6 * kHour;
constexpr double kLongestMttr = 1e4 * kHour;
constexpr double kMostFailuresPerHour = 1e6;
constexpr double kFewestFailuresPerHour = 1e-6;
constexpr double kFastest = 1e9;
constexpr double kLargestWeight = 1'000'000;
constexpr std::array<std::string_view, 2> kElements{"nic", "rail"};
constexpr std::array<std::string_view, 4> kLifetimes{"exponential", "weibull", "lognormal",
                                                     "constant"};
constexpr std::array kLifetimeFields{
    Field{choice("distribution", "exponential", kLifetimes,
                 "exponential: old or new makes no difference; weibull and lognormal: see 'shape' "
                 "and 'sigma'; constant: always the mean")},
    Field{{"shape",
           Type::kDecimal,
           "1",
           "of weibull: below 1 what has just been repaired fails again sooner, above 1 it wears "
           "out",
           {},
           0.3,
           10}},
    Field{{"sigma",
           Type::kDecimal,
           "1",
           "of lognormal: standard deviation of the natural logarithm",
           {},
           0.01,
           3}},
};
constexpr Record kLifetime{"How the times scatter around their mean.", kLifetimeFields};

constexpr std::array kProcessFields{
    Field{labelled("kinds",
                   "what breaks: names of faults of a link or of processes (of the node that the "
                   "NIC is in), or {name: {parameter: value}}; 'weight' among the parameters says "
                   "how likely each is, against 1 of the others"),
          Shape::kFaultKinds, true},
    Field{
        choice("per", "nic", kElements,
               "what fails and is repaired. nic: each NIC of a node by itself; rail: each rail at "
               "all 'nodes' at once, as when its switch dies")},
    Field{{"mtbf",
           Type::kDuration,
           "",
           "mean time of each of them from a repair to the next failure; either this or "
           "'failures_per_hour'. No default. What is published: 35 interruptions by switches and "
           "cables in 54 days of 16384 GPUs (Meta's Llama 3, arXiv 2407.21783, section 3.3.4; "
           "second-hand), with a NIC for each GPU 607000h",
           {},
           kMillisecond,
           kLongestMtbf}},
    Field{{"failures_per_hour",
           Type::kDecimal,
           "",
           "of each of them while it works: one hour over its mtbf",
           {},
           kFewestFailuresPerHour,
           kMostFailuresPerHour}},
    Field{labelled("failures", kLifetime.meaning), Shape::kRecord, false, &kLifetime},
    Field{
        {"mttr",
         Type::kDuration,
         "",
         "mean time to repair: from a failure to its end. No default: we know of no published one",
         {},
         kMillisecond,
         kLongestMttr},
        Shape::kScalar,
        true},
    Field{labelled("repairs", kLifetime.meaning), Shape::kRecord, false, &kLifetime},
    Field{{"accelerate",
           Type::kDecimal,
           "1",
           "mtbf and mttr pass so many times faster: with 3600, an hour in a second. What the job "
           "does, and its time-outs, do not",
           {},
           1,
           kFastest}},
    Field{number("nodes", "", 0, kMostNodes - 1, "that have it, all by default"), Shape::kList},
    Field{number("rails", "", 0, kMostRails - 1, "that have it, all by default"), Shape::kList},
    Field{number("at_most", "0", 0, kMostNodes* kMostRails,
                 "so many of its faults at a time; 0: as many as find a place")},
    Field{number("spare_rails", "1", 0, kMostRails,
                 "so many rails are whole at every moment, at all nodes; a failure for which there "
                 "is no place is left out")},
    Field{duration("rest", "500ms", 0,
                   "after a fault its rail is spared for so long at all nodes, or its node's "
                   "processes are")},
    Field{duration("shortest", "100ms", kMillisecond,
                   "a repair that was drawn shorter takes so long: what is shorter leaves no "
                   "evidence")},
    Field{duration("for", "", kMillisecond,
                   "faults strike, and end, in this time after the start of the run"),
          Shape::kScalar, true},
};
constexpr Record kProcess{"Elements that fail and are repaired at random, from the seed.",
                          kProcessFields};

}  // namespace

const Record& faultTable() { return kFault; }
const Record& targetTable() { return kTarget; }
const Record& stepTable() { return kStep; }
const Record& sequenceTable() { return kSequence; }
const Record& processTable() { return kProcess; }

ParameterSpec weightSpec() {
  return number("weight", "1", 1, kLargestWeight, "how likely this kind is, against the others");
}

ParameterSpec faultKindSpec() {
  static const std::vector<std::string_view> kKinds = [] {
    std::vector<std::string_view> names;
    for (const auto& kind : injector::faultKinds()) names.push_back(kind.name);
    return names;
  }();
  return {"kind", Type::kEnum, "", "what is broken and how", kKinds};
}

}  // namespace faultline::scenario
