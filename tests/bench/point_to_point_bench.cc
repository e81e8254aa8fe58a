// One process sends messages to another over the rails of a cluster inside this machine, in turns
// with iperf3 over the same rails: throughput as a ratio inside one run, CPU time per GiB.
//
//   bench_point_to_point --rails 1 --rate 500Mbit            # against iperf3 on the same rail
//   bench_point_to_point --rails 4 --rate unshaped
//   bench_point_to_point --rails 4 --rate 250Mbit --against one-rail   # four times one rail
//   bench_point_to_point --rails 4 --rate unshaped --io-threads 4 --against one-rail   # 16 cores
//   bench_point_to_point --rails 4 --rate 250Mbit --lose-rail          # what three of four carry
//
// Prints every round: Gbit/s of ours and of the other, their ratio, CPU seconds per GiB of both
// ends together, and our system calls per MiB, likewise. Last line: median and spread of the ratio.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/parameter.h"
#include "base/system_calls.h"
#include "harness/launch/privileges.h"
#include "harness/site/netns/cluster.h"
#include "harness/stats/quantile.h"
#include "injector/faults/registry.h"
#include "injector/netlink/namespace.h"
#include "resilient_ccl/fabric/fabric.h"
#include "tests/bench/processes.h"

namespace faultline {
namespace {

using bench::die;
using bench::require;
using bench::share;

constexpr Duration kWarmUp = 300ms;
constexpr Duration kSetUp = 10s;
constexpr int kOutstanding = 4;  // messages posted at both ends

struct Options {
  int rails = 1;
  std::string rate = "500Mbit";
  std::string policy = "pull";
  Bytes message = 4 << 20;
  double seconds = 2;
  int rounds = 5;
  int streams = 1;  // of iperf3, per rail
  std::string against = "iperf3";
  bool loseRail = false;
  double atLeast = 0;      // of the median ratio
  double keptAtLeast = 0;  // of the median of what is kept without a rail
  bool resilient = true;
  int ioThreads = 0;
  Bytes chunk = channel::LinkOptions{}.chunkBytes;
  double windowMs = toSeconds(channel::LinkOptions{}.windowTime) * 1e3;
};

/// What the two ends and the parent share.
struct Board {
  std::atomic<std::uint64_t> received{0};
  std::atomic<std::uint64_t> cpuNs[2]{};
  std::atomic<std::uint64_t> systemCalls[2]{};
  std::atomic<int> connected{0};
  std::atomic<bool> stop{false};
};

std::uint64_t cpuTime() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// One end: rank 0 sends, rank 1 receives, as fast as the rails go.
class End : private fabric::FabricClient {
 public:
  End(const Options& options, int rank, int rendezvousIn, int rendezvousOut, Board& board)
      : options_(options), rank_(rank), in_(rendezvousIn), out_(rendezvousOut), board_(board) {}

  void run(int controlTos) {
    const auto address = [](const std::string& text) {
      return require(transport::tcp::parseAddress(text));
    };
    fabric::FabricOptions options;
    options.self = rank_;
    options.ioThreads = options_.ioThreads;
    options.link.chunkBytes = options_.chunk;
    options.link.windowTime =
        duration_cast<Duration>(std::chrono::duration<double, std::milli>(options_.windowMs));
    options.managementAddress = address(netns::managementAddress(rank_));
    options.controlTos = controlTos;
    options.link.resilient = options_.resilient;
    options.link.policy =
        options_.policy == "pull" ? channel::Policy::kPull : channel::Policy::kPinned;
    for (int rail = 0; rail < options_.rails; ++rail) {
      options.nics.push_back({netns::railName(rail), address(netns::railAddress(rank_, rail))});
    }
    fabric_ = require(fabric::Fabric::create(options, *this));
    require(fabric_->connect(exchange(fabric_->address())));
    const TimePoint deadline = now() + kSetUp;
    while (!fabric_->allRailsUp()) {
      if (now() > deadline) die("the rails did not come up");
      require(fabric_->poll(10ms));
    }
    ++board_.connected;
    buffers_.resize(kOutstanding);
    for (auto& buffer : buffers_) buffer.resize(options_.message, std::byte{7});
    for (int i = 0; i < kOutstanding; ++i) post(i);
    TimePoint published{};
    while (!board_.stop) {
      require(fabric_->poll(10ms));
      if (rank_ == 1) board_.received = fabric_->counters().bytesArrived;
      if (now() - published < 5ms) continue;
      published = now();
      board_.cpuNs[rank_] = cpuTime();
      board_.systemCalls[rank_] = systemCallsMade();
    }
    fabric_->shutDown();
  }

 private:
  std::vector<fabric::ProcessAddress> exchange(const fabric::ProcessAddress& mine) {
    const std::string bytes = mine.serialize();
    const auto size = static_cast<std::uint32_t>(bytes.size());
    if (write(out_, &size, sizeof(size)) != sizeof(size) ||
        write(out_, bytes.data(), size) != static_cast<ssize_t>(size)) {
      die("cannot tell the address");
    }
    std::uint32_t theirs = 0;
    std::string other;
    if (read(in_, &theirs, sizeof(theirs)) != sizeof(theirs)) die("the other end is gone");
    other.resize(theirs);
    if (read(in_, other.data(), theirs) != static_cast<ssize_t>(theirs)) die("half an address");
    std::vector<fabric::ProcessAddress> all{mine, mine};
    all[1 - rank_] = require(fabric::ProcessAddress::parse(other));
    return all;
  }

  void post(std::uint64_t buffer) {
    const channel::MessageKey key{.communicator = 1, .sequence = next_++, .stream = 1};
    std::byte* const data = buffers_[buffer].data();
    if (rank_ == 0) {
      fabric_->postSend(1, key, data, options_.message, buffer);
    } else {
      fabric_->postReceive(0, key, data, options_.message, buffer);
    }
  }

  void sendDone(int, std::uint64_t token) override { post(token); }
  void receiveDone(int, std::uint64_t token, Bytes) override { post(token); }
  void sendFailed(int, std::uint64_t, const Status& why) override {
    die("a send failed: " + why.message());
  }
  void receiveFailed(int, std::uint64_t, const Status& why) override {
    die("a receive failed: " + why.message());
  }
  void failedOver(int, const channel::Failover& failover) override {
    // A rate with a failover in it is another rate.
    std::fprintf(stderr, "rank %d gave rail %d up: %s%s\n", rank_, failover.rail,
                 std::string(channel::causeName(failover.cause)).c_str(),
                 failover.stalled ? " (stalled)" : "");
  }
  void failedBack(int, int, TimePoint) override {}
  void explained(int, int, channel::Cause, channel::Where) override {}
  void linkFailed(int, const Status& why) override {
    if (!board_.stop) die("the link failed: " + why.message());
  }

  const Options& options_;
  int rank_, in_, out_;
  Board& board_;
  std::unique_ptr<fabric::Fabric> fabric_;
  std::vector<std::vector<std::byte>> buffers_;
  std::uint32_t next_ = 0;
};

/// Runs `body` in a child inside the node's namespace.
template <typename Body>
pid_t inside(netns::Cluster& cluster, int node, Body body) {
  const pid_t pid = bench::forkChild();
  if (pid > 0) return pid;
  const auto inside = netlink::ScopedNamespace::enter(cluster.nodeNamespace(node));
  if (!inside.ok()) die(inside.status().message());
  body();
  _exit(0);
}

void sleepFor(double seconds) { usleep(static_cast<useconds_t>(seconds * 1e6)); }

struct Sample {
  double gbit = 0;
  double cpuPerGiB = 0;
  double callsPerMiB = 0;  // of ours
  double gbitWithoutRail = 0;
};

Sample measureOurs(netns::Cluster& cluster, const Options& options) {
  const auto board = share<Board>();
  int forth[2], back[2];
  if (pipe2(forth, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0) die("no pipes");
  const int tos = cluster.controlTos();
  const pid_t pids[2] = {
      inside(cluster, 0, [&] { End(options, 0, back[0], forth[1], *board).run(tos); }),
      inside(cluster, 1, [&] { End(options, 1, forth[0], back[1], *board).run(tos); })};
  for (const int fd : {forth[0], forth[1], back[0], back[1]}) close(fd);
  const TimePoint deadline = now() + kSetUp;
  // Large buffers take longer to make than a warm-up: bytes must flow before it begins.
  while (board->connected < 2 || board->received == 0) {
    if (now() > deadline) die("the two ends did not connect, or nothing arrives");
    usleep(1000);
  }
  const auto rateFor = [&](double seconds) {
    const TimePoint begin = now();
    const std::uint64_t before = board->received;
    sleepFor(seconds);
    return static_cast<double>(board->received - before) * 8 / toSeconds(now() - begin) / 1e9;
  };
  sleepFor(toSeconds(kWarmUp));
  Sample sample;
  const std::uint64_t bytes = board->received;
  const std::uint64_t cpu = board->cpuNs[0] + board->cpuNs[1];
  const std::uint64_t calls = board->systemCalls[0] + board->systemCalls[1];
  sample.gbit = rateFor(options.seconds);
  const double gib = static_cast<double>(board->received - bytes) / (1 << 30);
  sample.cpuPerGiB =
      static_cast<double>(board->cpuNs[0] + board->cpuNs[1] - cpu) / 1e9 / std::max(gib, 1e-9);
  sample.callsPerMiB = static_cast<double>(board->systemCalls[0] + board->systemCalls[1] - calls) /
                       std::max(gib * 1024, 1e-9);
  if (options.loseRail) {
    const auto* kind = injector::findFaultKind("port_down");
    const auto fault = require(injector::makeFault(
        "port_down", require(injector::FaultParameters::parse(*kind, {{"how", "carrier"}})),
        cluster.railTarget(1, 0)));
    require(fault->prepare());
    require(fault->apply());
    sleepFor(0.5);
    sample.gbitWithoutRail = rateFor(options.seconds);
    require(fault->revert());
  }
  board->stop = true;
  for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
  return sample;
}

/// One iperf3 pair per rail, all at once; the sum of what the receivers saw.
Sample measureIperf(netns::Cluster& cluster, const Options& options) {
  std::vector<pid_t> servers, clients;
  std::vector<int> outputs;
  for (int rail = 0; rail < options.rails; ++rail) {
    const std::string address = netns::railAddress(1, rail);
    servers.push_back(inside(cluster, 1, [&] {
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, STDOUT_FILENO);
      execlp("iperf3", "iperf3", "-s", "-1", "-B", address.c_str(), nullptr);
      die("iperf3 is missing: ci/setup.sh installs it");
    }));
  }
  sleepFor(0.2);
  for (int rail = 0; rail < options.rails; ++rail) {
    int out[2];
    if (pipe(out) != 0) die("no pipe");
    clients.push_back(inside(cluster, 0, [&] {
      dup2(out[1], STDOUT_FILENO);
      execlp("iperf3", "iperf3", "-J", "-O", "0.3", "-c", netns::railAddress(1, rail).c_str(), "-B",
             netns::railAddress(0, rail).c_str(), "-t",
             fmt::format("{:.0f}", std::max(1.0, options.seconds)).c_str(), "-P",
             std::to_string(options.streams).c_str(), nullptr);
      die("iperf3 is missing: ci/setup.sh installs it");
    }));
    close(out[1]);
    outputs.push_back(out[0]);
  }
  Sample sample;
  for (const int fd : outputs) {
    std::string text;
    char buffer[65536];
    for (ssize_t got = 0; (got = read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, got);
    close(fd);
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded() || !json.contains("end") || !json["end"].contains("sum_received")) {
      die("iperf3 failed: " + text.substr(0, 300));
    }
    sample.gbit += json["end"]["sum_received"]["bits_per_second"].get<double>() / 1e9;
  }
  double cpu = 0;
  const auto reap = [&](pid_t pid) {
    rusage used{};
    wait4(pid, nullptr, 0, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    cpu += seconds(used.ru_utime) + seconds(used.ru_stime);
  };
  std::ranges::for_each(clients, reap);
  std::ranges::for_each(servers, reap);  // -1: they leave after their only client
  sample.cpuPerGiB = cpu / (sample.gbit * options.seconds * 1e9 / 8 / (1 << 30));
  return sample;
}

int run(const Options& options) {
  (void)require(launch::enterPrivileges());
  const BitsPerSecond rate = options.rate == "unshaped" ? 0 : require(parseRate(options.rate));
  auto cluster =
      require(netns::Cluster::create({.nodes = 2, .rails = options.rails, .rail_rate = rate}));
  std::vector<double> ratios, kept;
  std::printf("round   ours Gbit/s  other Gbit/s   ratio   cpu s/GiB ours/other   calls/MiB%s\n",
              options.loseRail ? "   kept without rail 0" : "");
  for (int round = 0; round < options.rounds; ++round) {
    Sample ours, other;
    const auto measureOther = [&] {
      if (options.against == "iperf3") {
        other = measureIperf(*cluster, options);
        return;
      }
      Options one = options;
      one.rails = 1;
      one.loseRail = false;
      other = measureOurs(*cluster, one);
      other.gbit *= options.rails;
    };
    // In turns, each first every second time.
    if (round % 2 == 1) measureOther();
    ours = measureOurs(*cluster, options);
    if (round % 2 == 0) measureOther();
    ratios.push_back(ours.gbit / other.gbit);
    std::printf("%5d  %12.3f  %12.3f  %6.3f   %.2f / %.2f   %.1f", round + 1, ours.gbit, other.gbit,
                ratios.back(), ours.cpuPerGiB, other.cpuPerGiB, ours.callsPerMiB);
    if (options.loseRail) {
      const double ideal = static_cast<double>(options.rails - 1) / options.rails;
      kept.push_back(ours.gbitWithoutRail / ours.gbit / ideal);
      std::printf("   %.3f of %d/%d", kept.back(), options.rails - 1, options.rails);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  const auto holds = [](const char* name, const std::vector<double>& values, double least) {
    const double median = *stats::median(values);
    std::printf("%s: median %.3f, from %.3f to %.3f, n %zu%s\n", name, median,
                std::ranges::min(values), std::ranges::max(values), values.size(),
                median < least ? fmt::format("; below {:.3f}", least).c_str() : "");
    return median >= least;
  };
  bool good = holds("ratio", ratios, options.atLeast);
  if (!kept.empty()) good = holds("kept", kept, options.keptAtLeast) && good;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace faultline

int main(int argc, char** argv) {
  faultline::Options options;
  CLI::App app{"Point-to-point throughput over the rails of a cluster inside this machine"};
  app.add_option("--rails", options.rails)->check(CLI::Range(1, 16));
  app.add_option("--rate", options.rate, "Of a rail, or `unshaped`");
  app.add_option("--policy", options.policy)->check(CLI::IsMember({"pull", "pinned"}));
  app.add_option("--message", options.message, "Bytes");
  app.add_option("--seconds", options.seconds, "Of a measurement");
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  app.add_option("--streams", options.streams, "Of iperf3, per rail");
  app.add_option("--against", options.against)->check(CLI::IsMember({"iperf3", "one-rail"}));
  app.add_flag("--lose-rail", options.loseRail, "Also measure with the port of one rail down");
  app.add_option("--at-least", options.atLeast, "Exit 1 when the median ratio is below");
  app.add_option("--kept-at-least", options.keptAtLeast, "The same of what is kept without a rail");
  app.add_option("--io-threads", options.ioThreads, "Of each end")->check(CLI::Range(0, 16));
  app.add_option("--window", options.windowMs, "Milliseconds of a rail's rate")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_option("--chunk", options.chunk, "Bytes")->check(CLI::Range(1 << 10, 16 << 20));
  app.add_flag("!--not-resilient", options.resilient, "As fault_free runs");
  CLI11_PARSE(app, argc, argv);
  return faultline::run(options);
}
