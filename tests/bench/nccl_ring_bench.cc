// How long NCCL's ring AllReduce of a small size takes over the plugin, without a GPU: each process
// is a rank, whose only thread does what NCCL's proxy does. A call has a ring over each of the
// `--connections` (NCCL's channels): it posts the receives of all its steps, sends what it has (the
// first message at once, the next one when the one before it has come), and is over when all have
// come and gone. Over loopback. With `--against LIBRARY` another build of the plugin takes turns
// with it.
//
//   bench_nccl_ring --ranks 4 --message 8192 --against OTHER/libnccl-net-faultline.so

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "harness/stats/quantile.h"
#include "tests/bench/processes.h"
#include "tests/support/net_driver.h"

namespace faultline::test {
namespace {

constexpr int kMostRanks = 8;
constexpr int kMostConnections = 8;
constexpr int kVersion = 10;
constexpr int kTag = 3;
constexpr int kWarmUp = 50;
constexpr Duration kMeet = 20s;

struct Options {
  std::string library, against;
  int ranks = 2;
  int connections = 1;
  int message = 8192;
  int calls = 2000;
  int rounds = 5;
};

/// What the processes of one measurement share.
struct Board {
  using Handle = std::array<std::byte, nccl::kNetHandleBytes>;
  std::array<std::array<Handle, kMostConnections>, kMostRanks> handles;
  std::atomic<int> listening;
  std::atomic<double> seconds;  // of rank 0
};

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "bench_nccl_ring: %s\n", why.c_str());
  for (const std::string& line : NetDriver::warnings())
    std::fprintf(stderr, "  %s\n", line.c_str());
  _exit(1);
}

void check(NetResult result, const char* what) {
  if (result != NetResult::kSuccess) die(what);
}

/// One of the rings of a call, as one of its ranks sees it.
class Ring {
 public:
  Ring(NetDriver& net, const Options& options)
      : net_(net),
        steps_(2 * (options.ranks - 1)),
        size_(static_cast<std::size_t>(options.message)),
        in_(steps_ * size_),
        out_(in_.size()) {}

  void listen(Board::Handle& handle) { check(net_.listen(0, handle.data(), &listener_), "listen"); }
  /// Whether both neighbours are there; to be asked again until they are.
  bool meet(const Board::Handle& next) {
    if (!handle_) handle_ = next;
    if (to_ == nullptr) check(net_.connect(0, handle_->data(), &to_), "connect");
    if (from_ == nullptr) check(net_.accept(listener_, &from_), "accept");
    if (to_ == nullptr || from_ == nullptr) return false;
    check(net_.closeListen(listener_), "closeListen");
    return true;
  }

  void begin() { posted_ = sent_ = came_ = gone_ = 0; }
  /// What can be done now; whether that was the last.
  bool proceed() {
    // As NCCL, which posts what it has room for, whatever comes.
    const std::size_t room = 4 * size_;
    if (posted_ < steps_) {
      void* data = in_.data() + posted_ * size_;
      void* request = nullptr;
      check(net_.irecv(from_, std::span(&data, 1), std::span(&room, 1), std::span(&kTag, 1),
                       &request),
            "irecv");
      if (request != nullptr) receives_[posted_++] = request;
    }
    if (sent_ < steps_ && sent_ <= came_) {
      void* request = nullptr;
      check(net_.isend(to_, out_.data() + sent_ * size_, size_, kTag, &request), "isend");
      if (request != nullptr) sends_[sent_++] = request;
    }
    if (came_ < posted_ && done(receives_[came_])) ++came_;
    if (gone_ < sent_ && done(sends_[gone_])) ++gone_;
    return came_ == steps_ && gone_ == steps_;
  }

  void close() {
    check(net_.closeSend(to_), "closeSend");
    check(net_.closeRecv(from_), "closeRecv");
  }

 private:
  bool done(void* request) {
    int done = 0;
    std::array<int, nccl::kNetMaxRequests> sizes{};
    check(net_.test(request, &done, sizes.data()), "test");
    return done != 0;
  }

  NetDriver& net_;
  const int steps_;
  const std::size_t size_;
  std::optional<Board::Handle> handle_;  // that of the next rank, which connect keeps its place in
  void* listener_ = nullptr;
  void* to_ = nullptr;
  void* from_ = nullptr;
  std::vector<std::byte> in_, out_;
  std::array<void*, 2 * kMostRanks> receives_{}, sends_{};
  int posted_ = 0, sent_ = 0, came_ = 0, gone_ = 0;
};

class Rank {
 public:
  Rank(const Options& options, const std::string& library, int rank, Board& board)
      : net_(library, kVersion) {
    if (!net_.error().empty()) die(net_.error());
    check(net_.init(), "init");
    for (int i = 0; i < options.connections; ++i) {
      rings_.emplace_back(net_, options).listen(board.handles[rank][i]);
    }
    ++board.listening;
    const TimePoint deadline = now() + kMeet;
    const auto awaited = [&] {
      if (now() > deadline) die("the ranks do not find each other");
    };
    while (board.listening < options.ranks) awaited();
    const auto& next = board.handles[(rank + 1) % options.ranks];
    for (int i = 0; i < options.connections; ++i) {
      while (!rings_[i].meet(next[i])) awaited();
    }
  }

  void call() {
    for (Ring& ring : rings_) ring.begin();
    bool over = false;
    while (!over) {
      over = true;
      for (Ring& ring : rings_) over = ring.proceed() && over;
    }
  }

  ~Rank() {
    for (Ring& ring : rings_) ring.close();
    check(net_.finalize(), "finalize");
  }

 private:
  NetDriver net_;
  std::deque<Ring> rings_;
};

/// Microseconds of a call.
double measure(const Options& options, const std::string& library) {
  const auto board = bench::share<Board>();
  std::vector<pid_t> children;
  std::fflush(stdout);
  for (int rank = 0; rank < options.ranks; ++rank) {
    children.push_back(bench::forkChild());
    if (children.back() != 0) continue;
    {
      Rank it(options, library, rank, *board);
      for (int i = 0; i < kWarmUp; ++i) it.call();
      const TimePoint began = now();
      for (int i = 0; i < options.calls; ++i) it.call();
      if (rank == 0) board->seconds = toSeconds(now() - began);
      for (int i = 0; i < kWarmUp; ++i) it.call();  // nobody ends while others measure
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) bench::die("a rank has failed");
  }
  return board->seconds / options.calls * 1e6;
}

int run(const Options& options) {
  setenv("FAULTLINE_NICS", "lo", 1);
  setenv("FAULTLINE_MANAGEMENT", "lo", 1);
  std::vector<double> here, there, ratios;
  for (int round = 0; round < options.rounds; ++round) {
    const bool second = round % 2 == 1;
    double other = 0;
    if (second && !options.against.empty()) other = measure(options, options.against);
    here.push_back(measure(options, options.library));
    if (!second && !options.against.empty()) other = measure(options, options.against);
    there.push_back(other);
    ratios.push_back(here.back() / other);
  }
  const auto line = [](const char* what, const std::vector<double>& values, const char* unit) {
    const auto [least, most] = std::ranges::minmax(values);
    std::printf("%-10s %8.3g%s (%.3g to %.3g)\n", what, stats::median(values).value_or(0), unit,
                least, most);
  };
  std::printf(
      "%d ranks, %d connections, %d messages of %d bytes a call on each, %d rounds of %d calls\n",
      options.ranks, options.connections, 2 * (options.ranks - 1), options.message, options.rounds,
      options.calls);
  line("this", here, " us");
  if (options.against.empty()) return 0;
  line("other", there, " us");
  line("this/other", ratios, "");
  return 0;
}

}  // namespace
}  // namespace faultline::test

int main(int argc, char** argv) {
  faultline::test::Options options;
  options.library = FAULTLINE_NET_PLUGIN;
  CLI::App app{"Small AllReduces of NCCL's kind over the plugin, without a GPU"};
  app.add_option("--ranks", options.ranks)->check(CLI::Range(2, faultline::test::kMostRanks));
  app.add_option("--connections", options.connections, "to each neighbour")
      ->check(CLI::Range(1, faultline::test::kMostConnections));
  app.add_option("--message", options.message, "bytes")->check(CLI::Range(1, 1 << 20));
  app.add_option("--calls", options.calls)->check(CLI::Range(1, 1'000'000));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  app.add_option("--against", options.against, "another build of the plugin");
  CLI11_PARSE(app, argc, argv);
  return faultline::test::run(options);
}
