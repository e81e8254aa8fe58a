#include "harness/baseline/modelled.h"

#include <algorithm>
#include <limits>

#include "base/units.h"
#include "harness/baseline/modelled_options.h"
#include "harness/baseline/strategy_table.h"

namespace faultline::baseline {
namespace {

constexpr double kMinute = 60;

double seconds(const Parameters& options, std::string_view name) {
  return toSeconds(options.get<Duration>(name));
}

double count(const Parameters& options, std::string_view name) {
  return static_cast<double>(options.get<std::int64_t>(name));
}

double betweenFaults(const Parameters& options) { return seconds(options, kTimeBetweenFaults); }

/// Requests under way at any moment (Little 1961).
double running(const ServingCase& serving) {
  return serving.requestsPerSecond * serving.endToEndSeconds;
}

/// Mean wait of an M/D/1 queue (Pollaczek and Khinchine): load x service / (2 (1 - load)).
double waitOf(double load, double serviceSeconds) {
  return load * serviceSeconds / (2 * (1 - load));
}

/// What one fault costs all requests together.
struct Extra {
  double underWay = 0;  ///< seconds of those under way when the fault strikes, wherever they are
  double waiting = 0;   ///< seconds of the others, who wait for their first token
  double affected = 0;  ///< requests that take longer
};

/// The terms of one fault, and as shares of what all requests until the next one take without it,
/// with `always` percent besides: the row's overhead, and as terms those of TTFT and TPOT. Of those
/// under way firstToken / endToEnd have no token yet, and lose time before it; the others lose it
/// between their tokens. Of several servers each has its own faults, and its own requests.
void addOverheads(const ServingCase& serving, const Parameters& options, const Extra& extra,
                  double always, Modelled& row) {
  if (!row.note.empty()) return;  // what never ends has no sum
  const double seconds = extra.underWay + extra.waiting;
  row.terms.insert(row.terms.begin(),
                   {{"extra time of all requests, of one fault", seconds, "s"},
                    {"of it, that of requests not under way then", extra.waiting, "s"},
                    {"requests that take longer", extra.affected, "requests"},
                    {"extra time of each of them", seconds / extra.affected, "s"}});
  row.faultSeconds = seconds;
  row.faultRequests = extra.affected;
  const double requests = serving.requestsPerSecond * betweenFaults(options);
  const double all = serving.endToEndSeconds;
  const double first = serving.firstTokenSeconds;
  const double between = extra.underWay / (requests * all);
  row.overheadPercent = always + kWholeInPercent * (between + extra.waiting / (requests * all));
  if (first > 0) {
    row.terms.push_back({"TTFT longer by",
                         always + kWholeInPercent * (between + extra.waiting / (requests * first)),
                         "%"});
  }
  if (serving.tokenSeconds > 0) {
    row.terms.push_back({"TPOT longer by", always + kWholeInPercent * between, "%"});
  }
}

/// Seconds until a backlog of so many seconds is gone.
double fallOf(double backlog, double load) {
  if (backlog <= 0) return 0;
  return load < 1 ? backlog / (1 - load) : std::numeric_limits<double>::infinity();
}

/// A server that did nothing for a while: what the requests that come meanwhile and afterwards
/// wait.
struct Queue {
  double seconds = 0;   ///< all of them together, until the next fault
  double requests = 0;  ///< that wait
  std::string note;     ///< why there is no end of it; empty: there is
};

Queue queueAfter(const ServingCase& serving, const Parameters& options, double outage,
                 double redo) {
  const double rate = serving.requestsPerSecond;
  const double load = rate / serving.capacity;
  const double until = betweenFaults(options);
  const double fall = fallOf(outage + redo, load);
  Queue queue{.seconds = delayOfAll(rate, load, outage, redo, until),
              .requests = rate * std::min(fall, until),
              .note = {}};
  if (load >= 1) {
    queue.note =
        "as many requests come as can be served, or more: the backlog stays or grows until the "
        "next fault";
  } else if (fall > until) {
    queue.note = "the next fault comes before the backlog is gone: it never catches up";
  }
  return queue;
}

}  // namespace

double delayOfAll(double rate, double load, double outage, double redo, double left) {
  const double backlog = outage + redo;
  const double fall = 1 - load;
  const double until = fall > 0 ? std::min(left, backlog / fall) : left;
  return rate * (backlog * until - fall * until * until / 2);
}

Modelled restartAtScale(const Parameters& options) {
  const double detect = seconds(options, "detect");
  const double isolate = seconds(options, "isolate");
  const double load = seconds(options, "load");
  const double lost = seconds(options, "checkpoint_every") / 2;
  const double all = detect + isolate + load + lost;
  const double useful = betweenFaults(options) - all;
  Modelled row{.overheadPercent = {},
               .terms = {{"detect", detect / kMinute, "min"},
                         {"isolate", isolate / kMinute, "min"},
                         {"load", load / kMinute, "min"},
                         {"lost work", lost / kMinute, "min"},
                         {"recovery", all / kMinute, "min"}},
               .note = {}};
  if (useful > 0) {
    row.overheadPercent = kWholeInPercent * all / useful;
    row.faultSeconds = all;
  } else {
    row.note = "the next fault comes before the job has recovered: it never gets on";
  }
  return row;
}

Modelled restartServer(const ServingCase& serving, const Parameters& options) {
  const double outage = seconds(options, "detect") + seconds(options, "restart");
  const double requests = running(serving);
  // They are half through on average, and all of it is lost.
  const double redo = requests / serving.capacity / 2;
  const double again = serving.prefillSeconds + serving.outputTokens / 2 * serving.tokenSeconds;
  const Queue queue = queueAfter(serving, options, outage, redo);
  Modelled row{.overheadPercent = {},
               .terms = {{"outage", outage, "s"},
                         {"requests redone", requests, "requests"},
                         {"work redone", redo, "s"}},
               .note = queue.note};
  addOverheads(serving, options,
               {.underWay = requests * (outage + again),
                .waiting = queue.seconds,
                .affected = requests + queue.requests},
               0, row);
  return row;
}

Modelled rerouteRequests(const ServingCase& serving, const Parameters& options) {
  const double replicas = count(options, "replicas");
  const double others = replicas - 1;
  const double detect = seconds(options, "detect");
  const double own = serving.requestsPerSecond;
  const double rate = own * replicas;
  const double load = own / serving.capacity;
  const double after = load * replicas / others;
  const double requests = running(serving);
  // The prompt and what has been generated of the output are one prompt for the others.
  const double again =
      serving.promptTokens > 0
          ? serving.prefillSeconds * (1 + serving.outputTokens / 2 / serving.promptTokens)
          : 0;
  const double replaced = std::min(seconds(options, "replace"), betweenFaults(options));
  const double unseen = std::min(detect, replaced);
  const double rest = replaced - unseen;
  const double redo = (requests * again + own * unseen / serving.capacity) / others;
  // What the others have not caught up with by then, all of them share.
  const double backlog = std::max(0.0, redo - (1 - after) * rest) * others / replicas;
  const double until = betweenFaults(options) - replaced;
  const double fall = fallOf(backlog, load);
  Extra extra{.underWay = requests * (detect + again),
              .waiting = own * (unseen * detect - unseen * unseen / 2) +
                         others * delayOfAll(rate / others, after, 0, redo, rest) +
                         replicas * delayOfAll(own, load, 0, backlog, until),
              .affected = requests + own * unseen + rate * (rest + std::min(fall, until))};
  double longer = 0;
  if (after < 1) {
    longer = waitOf(after, 1 / serving.capacity) - waitOf(load, 1 / serving.capacity);
    extra.waiting += rate * rest * longer;
  }
  Modelled row{.overheadPercent = {},
               .terms = {{"outage of one replica", detect, "s"},
                         {"requests rerouted", requests, "requests"},
                         {"work redone by each other replica", redo, "s"},
                         {"load of the others", kWholeInPercent * after, "%"},
                         {"longer wait of each request", longer, "s"}},
               .note = fall > until ? "the backlog is not gone when the next fault comes: it never "
                                      "catches up"
                                    : ""};
  addOverheads(serving, options, extra, 0, row);
  return row;
}

Modelled kvReplicate(const ServingCase& serving, const Parameters& options) {
  const double requests = running(serving);
  const double detect = seconds(options, "heartbeat") * count(options, "missed");
  const double restart = seconds(options, "restart");
  const double tokens = requests * (serving.promptTokens + serving.outputTokens / 2);
  const double transfer = tokens * serving.kvBytesPerToken / serving.bytesPerSecond;
  const double again = count(options, "replicate_every") * serving.tokenSeconds;
  const double outage = detect + restart + transfer + again;
  const Queue queue = queueAfter(serving, options, outage, 0);
  const double streaming = options.get<Percent>("streaming").value;
  Modelled row{.overheadPercent = {},
               .terms = {{"detect", detect, "s"},
                         {"restart of the worker", restart, "s"},
                         {"its keys and values come back", transfer, "s"},
                         {"tokens done again", again, "s"},
                         {"streaming, all the time", streaming, "%"}},
               .note = queue.note};
  addOverheads(serving, options,
               {.underWay = requests * outage,
                .waiting = queue.seconds,
                .affected = requests + queue.requests},
               streaming, row);
  return row;
}

std::optional<Modelled> modelOf(std::string_view strategy, const ServingCase* serving,
                                const Parameters& options) {
  const StrategySpec* const spec = findStrategy(strategy);
  return spec == nullptr || !spec->modelled() ? std::nullopt : spec->model(serving, options);
}

}  // namespace faultline::baseline
