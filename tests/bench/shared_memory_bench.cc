// Two processes of this machine: what a rail through shared memory carries, in turns with a
// loopback TCP rail, with a plain copy through memory that both have mapped, and with the kernel
// copying from one process to the other (process_vm_readv).
//
//   bench_shared_memory [--message 4194304] [--seconds 1] [--rounds 5]
//
// Prints every round: GB/s of each and CPU seconds per GiB of both ends together, then the medians
// of the ratios to the plain copy of the same round. Then the time of half a round trip of 8 bytes
// over both rails.

#include <fmt/format.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "harness/stats/quantile.h"
#include "resilient_ccl/fabric/fabric.h"
#include "resilient_ccl/transport/shm/segment.h"
#include "tests/bench/processes.h"

namespace faultline {
namespace {

using bench::die;
using bench::require;
using bench::share;

using transport::shm::RingReader;
using transport::shm::RingWriter;
using transport::shm::Segment;

constexpr std::uint32_t kLoopback = 0x7f000001;
constexpr std::size_t kChunk = 64 << 10;
constexpr Duration kWarmUp = 200ms;
constexpr int kOutstanding = 4;  // messages posted at both ends

struct Options {
  Bytes message = 4 << 20;
  double seconds = 1;
  int rounds = 5;
};

/// What the two ends and the parent share.
struct Board {
  std::atomic<std::uint64_t> received{0};  // bytes, or round trips
  std::array<std::atomic<std::uint64_t>, 2> cpuNs{};
  std::atomic<std::uint64_t> address{0};  // of the sender's buffer
  std::atomic<bool> stop{false};
};

void publishCpu(Board& board, int end) {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  board.cpuNs[end] = static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// One end of a link between two processes: a stream of messages from 0 to 1, or one message to and
/// fro.
class FabricEnd : private fabric::FabricClient {
 public:
  FabricEnd(const Options& options, int rank, int connection, Board& board, bool shared,
            bool pingPong)
      : rank_(rank), board_(board), pingPong_(pingPong), length_(pingPong ? 8 : options.message) {
    fabric::FabricOptions fabricOptions;
    fabricOptions.self = rank;
    fabricOptions.nics = {{.device = "", .address = kLoopback}};
    fabricOptions.managementAddress = kLoopback;
    fabricOptions.host = shared ? "here" : "";
    fabricOptions.link.policy = channel::Policy::kPull;
    fabric_ = require(fabric::Fabric::create(fabricOptions, *this));
    const std::string mine = fabric_->address().serialize();
    std::array<char, 1024> theirs;
    if (write(connection, mine.data(), mine.size()) < 0) die("cannot tell the address");
    const ssize_t got = read(connection, theirs.data(), theirs.size());
    if (got <= 0) die("the other end is gone");
    std::vector<fabric::ProcessAddress> all(2, fabric_->address());
    all[1 - rank] = require(
        fabric::ProcessAddress::parse(std::string(theirs.data(), static_cast<std::size_t>(got))));
    require(fabric_->connect(all));
  }

  void run() {
    while (!fabric_->allRailsUp()) require(fabric_->poll(10ms));
    buffers_.assign(kOutstanding, std::vector<std::byte>(length_, std::byte{7}));
    if (pingPong_) {
      receive(0);
      if (rank_ == 0) send(1);
    } else {
      for (int i = 0; i < kOutstanding; ++i) rank_ == 0 ? send(i) : receive(i);
    }
    TimePoint published{};
    while (!board_.stop) {
      require(fabric_->poll(10ms));
      if (!pingPong_ && rank_ == 1) board_.received = fabric_->counters().bytesArrived;
      if (now() - published < 5ms) continue;
      published = now();
      publishCpu(board_, rank_);
    }
    fabric_->shutDown();
  }

 private:
  channel::MessageKey key(std::uint32_t number, int from) const {
    return {.communicator = 1, .sequence = number, .stream = static_cast<std::uint32_t>(from)};
  }
  void send(std::uint64_t buffer) {
    fabric_->postSend(1 - rank_, key(sent_++, rank_), buffers_[buffer].data(), length_, buffer);
  }
  void receive(std::uint64_t buffer) {
    fabric_->postReceive(1 - rank_, key(posted_++, 1 - rank_), buffers_[buffer].data(), length_,
                         buffer);
  }
  void sendDone(int, std::uint64_t token) override {
    if (!pingPong_) send(token);
  }
  void receiveDone(int, std::uint64_t token, Bytes) override {
    receive(token);
    if (!pingPong_) return;
    if (rank_ == 0) ++board_.received;
    send(1);
  }
  void sendFailed(int, std::uint64_t, const Status& why) override {
    die("a send failed: " + why.message());
  }
  void receiveFailed(int, std::uint64_t, const Status& why) override {
    die("a receive failed: " + why.message());
  }
  void failedOver(int, const channel::Failover&) override {}
  void failedBack(int, int, TimePoint) override {}
  void explained(int, int, channel::Cause, channel::Where) override {}
  void linkFailed(int, const Status& why) override {
    if (!board_.stop) die("the link failed: " + why.message());
  }

  const int rank_;
  Board& board_;
  const bool pingPong_;
  const Bytes length_;
  std::unique_ptr<fabric::Fabric> fabric_;
  std::vector<std::vector<std::byte>> buffers_;
  std::uint32_t sent_ = 0, posted_ = 0;
};

/// A copy in and a copy out, through a ring of the size that a rail has. Nobody sleeps.
void copyThroughMemory(const Options& options, int end, Board& board, const Segment& segment) {
  std::vector<std::byte> data(options.message, std::byte{7});
  RingWriter writer(segment.shared().directions[0].payload, segment.payload(0));
  RingReader reader(segment.shared().directions[0].payload, segment.payload(0));
  std::size_t at = 0;
  for (std::uint64_t turns = 0; !board.stop; ++turns) {
    const iovec piece{data.data() + at, std::min(kChunk, data.size() - at)};
    const std::size_t moved =
        end == 0 ? require(writer.write({&piece, 1})) : require(reader.read({&piece, 1}));
    at = (at + moved) % data.size();
    if (end == 1) board.received += moved;
    if (moved == 0) sched_yield();
    if (turns % 256 == 0) publishCpu(board, end);
  }
}

/// One copy, by the kernel, out of a process that does nothing.
void copyByKernel(const Options& options, int end, Board& board) {
  std::vector<std::byte> data(options.message, std::byte{7});
  if (end == 0) {
    board.cpuNs[1] = static_cast<std::uint64_t>(getpid());  // until the other end has read it
    board.address = reinterpret_cast<std::uint64_t>(data.data());
    while (!board.stop) usleep(1000);
    return;
  }
  while (board.address == 0) usleep(100);
  const auto pid = static_cast<pid_t>(board.cpuNs[1].load());
  std::size_t at = 0;
  for (std::uint64_t turns = 0; !board.stop; ++turns) {
    const std::size_t count = std::min(kChunk, data.size() - at);
    const iovec local{data.data() + at, count};
    const iovec remote{reinterpret_cast<void*>(board.address.load() + at), count};
    const ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got <= 0) die("process_vm_readv is not permitted");
    at = (at + static_cast<std::size_t>(got)) % data.size();
    board.received += static_cast<std::uint64_t>(got);
    if (turns % 256 == 0) publishCpu(board, end);
  }
}

struct Sample {
  double perSecond = 0;  // bytes, or round trips
  double cpuPerGiB = 0;
};

Sample measure(const Options& options, const std::function<void(int, int, Board&)>& body) {
  const auto board = share<Board>();
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) != 0) die("no sockets");
  std::array<pid_t, 2> pids{};
  for (int end = 0; end < 2; ++end) {
    pids[end] = bench::forkChild();
    if (pids[end] > 0) continue;
    body(end, ends[end], *board);
    _exit(0);
  }
  for (const int end : ends) close(end);
  while (board->received == 0) usleep(1000);
  usleep(kWarmUp / 1us);
  const auto cpu = [&] { return static_cast<double>(board->cpuNs[0] + board->cpuNs[1]); };
  const TimePoint begin = now();
  const std::uint64_t before = board->received;
  const double cpuBefore = cpu();
  usleep(static_cast<useconds_t>(options.seconds * 1e6));
  const auto moved = static_cast<double>(board->received - before);
  Sample sample{.perSecond = moved / toSeconds(now() - begin),
                .cpuPerGiB = (cpu() - cpuBefore) / 1e9 / (moved / (1 << 30))};
  board->stop = true;
  for (const pid_t pid : pids) waitpid(pid, nullptr, 0);
  return sample;
}

int run(const Options& options) {
  struct Way {
    const char* name;
    std::function<Sample()> measure;
    std::vector<double> ratios{};
  };
  const auto fabrics = [&](bool shared, bool pingPong) {
    return measure(options, [&, shared, pingPong](int end, int connection, Board& board) {
      FabricEnd(options, end, connection, board, shared, pingPong).run();
    });
  };
  std::array ways{Way{"plain copy",
                      [&] {
                        const Segment segment = require(Segment::create());
                        return measure(options, [&](int end, int, Board& board) {
                          copyThroughMemory(options, end, board, segment);
                        });
                      }},
                  Way{"by kernel",
                      [&] {
                        return measure(options, [&](int end, int, Board& board) {
                          copyByKernel(options, end, board);
                        });
                      }},
                  Way{"shared rail", [&] { return fabrics(true, false); }},
                  Way{"loopback TCP", [&] { return fabrics(false, false); }}};
  std::printf("round");
  for (const Way& way : ways) std::printf("  %22s", way.name);
  std::printf("   (GB/s, CPU s/GiB)\n");
  for (int round = 0; round < options.rounds; ++round) {
    std::array<Sample, ways.size()> samples;
    for (std::size_t i = 0; i < ways.size(); ++i) {  // another one first every time
      const std::size_t way = (i + round) % ways.size();
      samples[way] = ways[way].measure();
    }
    std::printf("%5d", round + 1);
    for (std::size_t way = 0; way < ways.size(); ++way) {
      ways[way].ratios.push_back(samples[way].perSecond / samples[0].perSecond);
      std::printf("  %12.2f / %7.3f", samples[way].perSecond / 1e9, samples[way].cpuPerGiB);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  for (const Way& way : ways) {
    std::printf("%s: %.3f of the plain copy (median; %.3f to %.3f)\n", way.name,
                *stats::median(way.ratios), std::ranges::min(way.ratios),
                std::ranges::max(way.ratios));
  }
  for (const bool shared : {true, false}) {
    std::vector<double> times;
    for (int round = 0; round < options.rounds; ++round) {
      times.push_back(0.5e6 / fabrics(shared, true).perSecond);
    }
    std::printf("8 bytes over %s: %.1f us (median; %.1f to %.1f)\n",
                shared ? "a shared rail" : "loopback TCP", *stats::median(times),
                std::ranges::min(times), std::ranges::max(times));
  }
  return 0;
}

}  // namespace
}  // namespace faultline

int main(int argc, char** argv) {
  faultline::Options options;
  CLI::App app{"What a rail through shared memory carries, next to plain copies and loopback TCP"};
  app.add_option("--message", options.message, "Bytes");
  app.add_option("--seconds", options.seconds, "Of a measurement");
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  return faultline::run(options);
}
