// AllReduce by one or several ranks on each node of a cluster inside this machine, with all NICs
// and without some of node 1 (and 3): a ring, and an algorithm that is made for the loss, next to
// bound and model. Ranks of a node talk through shared memory.
//
//   bench_node_all_reduce --nodes 4 --per-node 2 --rails 2 --rate 200Mbit --size 8388608
//   bench_node_all_reduce --nodes 4 --per-node 1 --rails 4 --lost 2 --algorithm optcc
//   bench_node_all_reduce --nodes 8 --per-node 1 --rails 1 --slow 50% --algorithm optcc --calls 24
//
// With --slow nothing is lost: all rails of these nodes run at that part of their rate.
//
// Times are medians in units of S/B: S = bytes per rank, B = what the NICs of a node carry (0.957
// of their rate: headers). In every round the ring runs with and without the NICs, the other
// algorithm without them.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/parameter.h"
#include "harness/launch/privileges.h"
#include "harness/site/netns/cluster.h"
#include "harness/stats/quantile.h"
#include "injector/faults/registry.h"
#include "injector/netlink/namespace.h"
#include "resilient_ccl/comm/communicator.h"
#include "resilient_ccl/fabric/host_identity.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "tests/bench/processes.h"

namespace faultline {
namespace {

using bench::die;
using bench::require;
using bench::share;

constexpr double kGoodput = 0.957;  // of the rate, in segments of 1448 bytes
constexpr int kWarmUp = 3;
constexpr int kMostCalls = 64;
constexpr std::uint16_t kRendezvousPort = 20'000;
constexpr Duration kSettle = 500ms;  // from the loss of the NIC on

struct Options {
  int nodes = 2;
  int perNode = 2;
  int rails = 2;
  std::string rate = "200Mbit";
  std::string algorithm = "optcc_server";
  Bytes size = 8 << 20;
  Bytes chunk = channel::LinkOptions{}.chunkBytes;
  int suspectAfter = 10;  // ms
  int segments = 32;
  int rounds = 3;
  int lost = 1;      // NICs, the first ones, of each degraded node
  std::string slow;  // instead: what their rails keep of their rate
  int calls = 8;     // measured in each round
  int pause = 0;     // ms before each call, as an iteration computes
  bool everyCall = false;
  bool outOfPlace = false;
  bool alone = false;
  int degraded = 1;  // nodes: 1, then 3
  int ranks() const { return nodes * perNode; }
  double left() const {
    if (slow.empty()) return static_cast<double>(rails - lost) / rails;
    return std::stod(slow) / 100;
  }
  bool isDegraded(int node) const { return node % 2 == 1 && node < 2 * degraded; }
};

/// What the kernel counts of the TCP of a network namespace: segments sent again, and why.
constexpr std::array kTcpCounters{"RetransSegs",    "TCPTimeouts",         "TCPLossProbes",
                                  "TCPFastRetrans", "TCPSlowStartRetrans", "TCPDSACKRecv"};
using TcpCounts = std::array<std::int64_t, kTcpCounters.size()>;

/// Of this thread's. Each line of names is followed by one of values.
TcpCounts tcpCounts() {
  TcpCounts counts{};
  for (const char* const path : {"/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"}) {
    std::ifstream file(path);
    std::string names, values, name, value;
    while (std::getline(file, names) && std::getline(file, values)) {
      std::istringstream nameWords(names), valueWords(values);
      while (nameWords >> name && valueWords >> value) {
        const auto* const found = std::ranges::find(kTcpCounters, name);
        if (found != kTcpCounters.end()) counts[found - kTcpCounters.begin()] = std::stoll(value);
      }
    }
  }
  return counts;
}

/// What the ranks and the parent share.
struct Board {
  std::atomic<int> joined{0};
  std::atomic<int> waiting{0};  // ranks that have done what was asked for
  std::atomic<int> asked{0};    // series of reductions
  /// Of the monotonic clock: the first rank began, the last one was done.
  struct Span {
    std::atomic<std::int64_t> begin{std::numeric_limits<std::int64_t>::max()};
    std::atomic<std::int64_t> end{0};
  };
  std::array<std::array<Span, kMostCalls>, 2> spans;                                // by series
  std::array<std::array<std::atomic<std::int64_t>, kTcpCounters.size()>, 2> tcp{};  // by series

  void addTcp(int series, const TcpCounts& before, const TcpCounts& after) {
    for (std::size_t i = 0; i < before.size(); ++i) tcp[series][i] += after[i] - before[i];
  }

  void note(int series, int i, TimePoint begin, TimePoint end) {
    Span& span = spans[series][i];
    std::int64_t seen = span.begin;
    const std::int64_t b = begin.time_since_epoch().count(), e = end.time_since_epoch().count();
    while (b < seen && !span.begin.compare_exchange_weak(seen, b)) {
    }
    seen = span.end;
    while (e > seen && !span.end.compare_exchange_weak(seen, e)) {
    }
  }
};

schedule::PortBandwidths portsOf(const Options& options) {
  std::vector<double> ports(options.ranks(), 1.0);
  for (int rank = 0; rank < options.ranks(); ++rank) {
    if (!options.isDegraded(rank / options.perNode)) continue;
    ports[rank] = options.left();
  }
  return ports;
}

void reduce(const Options& options, const std::string& algorithm, const auth::JobKey& key, int rank,
            int controlTos, Board& board, int series) {
  const auto address = [](const std::string& text) {
    return require(transport::tcp::parseAddress(text));
  };
  const int node = rank / options.perNode;
  comm::CommunicatorOptions job;
  job.rank = rank;
  job.size = options.ranks();
  job.rendezvous = {address(netns::managementAddress(0)), kRendezvousPort};
  job.algorithm = algorithm;
  job.fabric.link.chunkBytes = options.chunk;
  job.fabric.link.suspectAfter = std::chrono::milliseconds(options.suspectAfter);
  if (algorithm != "ring") {
    job.segments = options.segments;
    job.bandwidths = portsOf(options);
  }
  job.fabric.jobKey = key;
  job.fabric.host = fabric::hostIdentity();
  job.fabric.managementAddress = address(netns::managementAddress(node));
  job.fabric.controlTos = controlTos;
  job.fabric.link.policy = channel::Policy::kPull;
  for (int rail = 0; rail < options.rails; ++rail) {
    job.fabric.nics.push_back({netns::railName(rail), address(netns::railAddress(node, rail))});
  }
  const auto comm = require(comm::Communicator::create(job));
  ++board.joined;
  const std::int64_t count = options.size / 4;
  std::vector<float> result(count), other(options.outOfPlace ? count : 0);
  std::vector<float>& source = options.outOfPlace ? other : result;
  for (int turn = 1; turn <= series; ++turn) {
    while (board.asked < turn) usleep(1000);
    const TcpCounts before = tcpCounts();
    for (int i = -kWarmUp; i < options.calls; ++i) {
      std::ranges::fill(source, 1.0F);
      if (options.pause > 0) usleep(options.pause * 1000);
      require(comm->barrier()->wait());
      const TimePoint begin = now();
      const auto work = comm->allReduce(source.data(), result.data(), count, comm::DataType::kF32,
                                        comm::ReduceOp::kSum);
      require(work->wait());
      if (std::ranges::count(result, static_cast<float>(options.ranks())) != count)
        die("wrong sums");
      if (i >= 0) board.note(turn - 1, i, begin, work->finished());
    }
    require(comm->barrier()->wait());
    if (rank % options.perNode == 0) board.addTcp(turn - 1, before, tcpCounts());
    ++board.waiting;
  }
  require(comm->finish());
}

std::vector<std::unique_ptr<injector::Fault>> degrade(netns::Cluster& cluster,
                                                      const Options& options) {
  const bool slow = !options.slow.empty();
  const char* const name = slow ? "throttle" : "port_down";
  const auto parameters = require(injector::FaultParameters::parse(
      *injector::findFaultKind(name),
      {slow ? std::pair<const std::string, std::string>{"rate", options.slow}
            : std::pair<const std::string, std::string>{"how", "carrier"}}));
  std::vector<std::unique_ptr<injector::Fault>> faults;
  for (int node = 0; node < options.nodes; ++node) {
    for (int rail = 0; options.isDegraded(node) && rail < (slow ? options.rails : options.lost);
         ++rail) {
      faults.push_back(
          require(injector::makeFault(name, parameters, cluster.railTarget(node, rail))));
      require(faults.back()->prepare());
      require(faults.back()->apply());
    }
  }
  return faults;
}

/// Median seconds of a reduction with all NICs (`whole`, 0 unless asked for) and without one.
struct Times {
  double whole = 0, lost = 0;
};

Times measure(netns::Cluster& cluster, const Options& options, const std::string& algorithm,
              bool alsoWhole) {
  const auto shared = share<Board>();
  Board& board = *shared;
  const int series = alsoWhole ? 2 : 1;
  const auth::JobKey key = auth::JobKey::random();
  std::vector<pid_t> pids;
  for (int rank = 0; rank < options.ranks(); ++rank) {
    const pid_t pid = bench::forkChild();
    if (pid == 0) {
      const auto inside =
          netlink::ScopedNamespace::enter(cluster.nodeNamespace(rank / options.perNode));
      if (!inside.ok()) die(inside.status().message());
      reduce(options, algorithm, key, rank, cluster.controlTos(), board, series);
      _exit(0);
    }
    pids.push_back(pid);
  }
  const auto reaches = [&](const std::atomic<int>& count, int wanted) {
    while (count < wanted) {
      int status = 0;
      if (waitpid(-1, &status, WNOHANG) > 0 && status != 0) die("a rank has failed");
      usleep(1000);
    }
  };
  const auto await = [&] {
    reaches(board.waiting, options.ranks() * ++board.asked);
    std::vector<double> seconds;
    for (int i = 0; i < options.calls; ++i) {
      const Board::Span& span = board.spans[board.asked - 1][i];
      seconds.push_back(toSeconds(Duration(span.end - span.begin)));
    }
    if (options.everyCall) {
      std::printf("%s;", algorithm.c_str());
      for (std::size_t i = 0; i < kTcpCounters.size(); ++i) {
        std::printf(" %s %lld", kTcpCounters[i],
                    static_cast<long long>(board.tcp[board.asked - 1][i]));
      }
      std::printf("; ms:");
      for (const double one : seconds) std::printf(" %.0f", one * 1e3);
      std::printf("\n");
    }
    return *stats::median(seconds);
  };
  reaches(board.joined, options.ranks());  // with all rails
  Times times;
  if (alsoWhole) times.whole = await();
  const std::vector<std::unique_ptr<injector::Fault>> faults = degrade(cluster, options);
  usleep(kSettle / 1us);
  times.lost = await();
  for (const auto& fault : faults) require(fault->revert());
  for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
  return times;
}

schedule::Cost modelOf(const Options& options, const std::string& algorithm, bool whole) {
  const schedule::PortBandwidths ports =
      whole ? schedule::PortBandwidths{std::vector(options.ranks(), 1.0),
                                       std::vector(options.ranks(), 1.0)}
            : portsOf(options);
  schedule::ScheduleRequest request{.ranks = options.ranks(),
                                    .elements = options.size / 4,
                                    .segments = algorithm == "ring" ? 2 : options.segments,
                                    .bandwidths = ports,
                                    .ranksPerNode = options.perNode};
  const auto made = require(schedule::makeSchedule(algorithm, request));
  return require(schedule::costOf(*made, ports, {.ranksPerNode = options.perNode}));
}

int run(const Options& options) {
  (void)require(launch::enterPrivileges());
  spdlog::set_level(spdlog::level::warn);
  const BitsPerSecond rate = require(parseRate(options.rate));
  auto cluster = require(netns::Cluster::create({.nodes = options.nodes,
                                                 .ranks_per_node = options.perNode,
                                                 .rails = options.rails,
                                                 .rail_rate = rate}));
  const double unit = static_cast<double>(options.size) * 8 /
                      (kGoodput * static_cast<double>(rate) * options.rails);
  struct Row {
    const char* name;
    std::string algorithm;
    bool whole;
    std::vector<double> times{}, overRing{};
  };
  std::vector<Row> rows{{"ring, all NICs", "ring", true},
                        {"ring, NICs lost", "ring", false},
                        {options.algorithm.c_str(), options.algorithm, false}};
  for (int round = 0; round < options.rounds; ++round) {
    const Times ring =
        options.alone ? Times{} : measure(*cluster, options, "ring", /*alsoWhole=*/true);
    const Times server = measure(*cluster, options, options.algorithm, /*alsoWhole=*/false);
    const std::array seconds{ring.whole, ring.lost, server.lost};
    for (std::size_t row = 0; row < rows.size(); ++row) {
      rows[row].times.push_back(seconds[row] / unit);
      rows[row].overRing.push_back(seconds[row] / ring.whole);
    }
    std::printf("round %d: %.1f, %.1f, %.1f ms\n", round + 1, ring.whole * 1e3, ring.lost * 1e3,
                server.lost * 1e3);
    std::fflush(stdout);
  }
  std::printf("%d nodes x %d ranks, %d rails of %s, %lld bytes; times in S/B, %d rounds\n",
              options.nodes, options.perNode, options.rails, options.rate.c_str(),
              static_cast<long long>(options.size), options.rounds);
  std::printf("%-26s %8s %8s %8s %10s %10s %10s\n", "", "time", "bound", "model", "time/bound",
              "time/ring", "model/ring");
  const double ringModel = modelOf(options, "ring", true).time;
  for (const Row& row : rows) {
    const schedule::Cost model = modelOf(options, row.algorithm, row.whole);
    const double time = *stats::median(row.times);
    std::printf("%-26s %8.3f %8.3f %8.3f %10.3f %10.3f %10.3f\n", row.name, time, model.boundTime,
                model.time, time / model.boundTime, *stats::median(row.overRing),
                model.time / ringModel);
  }
  return 0;
}

}  // namespace
}  // namespace faultline

int main(int argc, char** argv) {
  faultline::Options options;
  CLI::App app{"AllReduce by nodes of several ranks, with and without a lost NIC"};
  app.add_option("--nodes", options.nodes)->check(CLI::Range(2, 32));
  app.add_option("--per-node", options.perNode)->check(CLI::Range(1, 8));
  app.add_option("--rails", options.rails)->check(CLI::Range(1, 8));
  app.add_option("--rate", options.rate, "Of a rail");
  app.add_option("--size", options.size, "Bytes per rank");
  app.add_option("--chunk", options.chunk, "Bytes of a chunk on a rail, at most");
  app.add_option("--suspect-after", options.suspectAfter, "A rail without progress, in ms")
      ->check(CLI::Range(1, 5000));
  app.add_option("--segments", options.segments, "Of that algorithm");
  app.add_option("--algorithm", options.algorithm, "Made for the loss");
  app.add_option("--lost", options.lost, "NICs that each degraded node loses")
      ->check(CLI::Range(0, 7));
  app.add_option("--slow", options.slow, "Instead: what their rails keep, in percent");
  app.add_option("--calls", options.calls, "Measured in each round")
      ->check(CLI::Range(1, faultline::kMostCalls));
  app.add_flag("--out-of-place", options.outOfPlace, "As gradients are reduced");
  app.add_option("--pause", options.pause, "Before each call, in ms");
  app.add_flag("--alone", options.alone, "Without the rings to compare with");
  app.add_flag("--every-call", options.everyCall, "Print the time of each, and what TCP resent");
  app.add_option("--degraded", options.degraded, "Nodes that lose some: 1, then 3");
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 100));
  CLI11_PARSE(app, argc, argv);
  return faultline::run(options);
}
