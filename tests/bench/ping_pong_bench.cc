// Two ends that are polled without sleeping, as NCCL's proxy does: what a message to and fro over
// loopback rails takes, in turns with one TCP connection that carries a length and a payload, each
// in a call of its own (as NCCL's Socket transport does).
//
//   bench_ping_pong [--message 8] [--small 8192] [--rails 1] [--outstanding 8] [--seconds 0.5]
//   [--rounds 5] bench_ping_pong --processes 2       # two idle cores
//
// One process polls both ends in turn, and its processor time and system calls per message are
// exact whatever else the machine does; of two processes it is half the time of a round trip, and
// the calls of their waiting. Prints every round, and the medians.

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/system_calls.h"
#include "harness/stats/quantile.h"
#include "resilient_ccl/fabric/fabric.h"
#include "resilient_ccl/transport/tcp/socket.h"
#include "tests/bench/processes.h"

namespace faultline {
namespace {

using bench::die;
using bench::require;
using bench::share;

constexpr std::uint32_t kLoopback = 0x7f000001;
constexpr Duration kWarmUp = 100ms;
constexpr std::uint64_t kSeldom = 256;  // times between two looks at the counts

struct Options {
  Bytes message = 8;
  Bytes small = 8 << 10;
  int rails = 1;
  int outstanding = 8;
  double seconds = 0.5;
  int rounds = 5;
  int processes = 1;
};

/// What the two ends and the parent share.
struct Board {
  std::atomic<std::uint64_t> trips{0};
  std::array<std::atomic<std::uint64_t>, 2> systemCalls{};
  std::atomic<bool> stop{false};
};

/// Receives posted ahead; each message that comes is answered.
class FabricEnd : private fabric::FabricClient {
 public:
  FabricEnd(const Options& options, int rank, Board& board)
      : options_(options), rank_(rank), board_(board) {
    fabric::FabricOptions fabricOptions;
    fabricOptions.self = rank;
    fabricOptions.nics.assign(options.rails, {.device = "", .address = kLoopback});
    fabricOptions.managementAddress = kLoopback;
    fabricOptions.link.policy = channel::Policy::kPull;
    fabricOptions.link.smallMessage = options.small;
    fabric_ = require(fabric::Fabric::create(fabricOptions, *this));
  }
  ~FabricEnd() override { fabric_->shutDown(); }

  std::string address() const { return fabric_->address().serialize(); }
  void connect(const std::string& other) {
    std::vector<fabric::ProcessAddress> all(2, fabric_->address());
    all[1 - rank_] = require(fabric::ProcessAddress::parse(other));
    require(fabric_->connect(all));
  }
  bool connected() const { return fabric_->allRailsUp(); }
  void begin() {
    target_.assign(options_.outstanding * options_.message, std::byte{});
    source_.assign(options_.message, std::byte{7});
    for (int i = 0; i < options_.outstanding; ++i) receive(i);
    if (rank_ == 0) send();
  }
  void poll() { require(fabric_->poll(Duration::zero())); }

 private:
  channel::MessageKey key(std::uint32_t number, int from) const {
    return {.communicator = 1, .sequence = number, .stream = static_cast<std::uint32_t>(from)};
  }
  void send() {
    fabric_->postSend(1 - rank_, key(sent_++, rank_), source_.data(), options_.message, 0);
  }
  void receive(std::uint64_t buffer) {
    fabric_->postReceive(1 - rank_, key(posted_++, 1 - rank_),
                         target_.data() + buffer * options_.message, options_.message, buffer);
  }
  void sendDone(int, std::uint64_t) override {}
  void receiveDone(int, std::uint64_t token, Bytes) override {
    send();
    receive(token);
    if (rank_ == 0) ++board_.trips;
  }
  void sendFailed(int, std::uint64_t, const Status& why) override { linkFailed(0, why); }
  void receiveFailed(int, std::uint64_t, const Status& why) override { linkFailed(0, why); }
  void failedOver(int, const channel::Failover&) override {}
  void failedBack(int, int, TimePoint) override {}
  void explained(int, int, channel::Cause, channel::Where) override {}
  void linkFailed(int, const Status& why) override {
    if (!board_.stop) die("the link failed: " + why.message());
  }

  const Options& options_;
  const int rank_;
  Board& board_;
  std::vector<std::byte> source_, target_;
  std::uint32_t sent_ = 0, posted_ = 0;
  std::unique_ptr<fabric::Fabric> fabric_;
};

/// A length, then a payload.
class PlainEnd {
 public:
  PlainEnd(const Options& options, int rank, UniqueFd socket, Board& board)
      : rank_(rank), socket_(std::move(socket)), board_(board), data_(options.message) {
    constexpr int kOn = 1;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof(kOn));
  }

  void begin() {
    if (rank_ == 0) send();
  }
  void poll() {
    if (!move(&length_, sizeof(length_), ::recv, 0)) return;
    if (!move(data_.data(), length_, ::recv, 0)) return;
    if (rank_ == 0) ++board_.trips;
    send();
  }

 private:
  void send() {
    length_ = static_cast<std::uint32_t>(data_.size());
    move(&length_, sizeof(length_), ::send, MSG_NOSIGNAL);
    move(data_.data(), data_.size(), ::send, MSG_NOSIGNAL);
  }
  template <typename Call>
  bool move(void* data, std::size_t size, Call call, int flags) {
    for (std::size_t done = 0; done < size;) {
      countSystemCall();
      const ssize_t moved = call(socket_.get(), static_cast<std::byte*>(data) + done, size - done,
                                 flags | MSG_DONTWAIT);
      if (moved > 0) done += static_cast<std::size_t>(moved);
      if (moved == 0 || (moved < 0 && errno != EAGAIN) || board_.stop) return false;
      if (moved < 0 && done == 0 && flags == 0) return false;
    }
    return true;
  }

  const int rank_;
  UniqueFd socket_;
  Board& board_;
  std::vector<std::byte> data_;
  std::uint32_t length_ = 0;
};

/// Two connected TCP sockets.
std::array<UniqueFd, 2> connectedPair() {
  UniqueFd listener = require(transport::tcp::openListener({kLoopback, "", 0}));
  const auto where = require(transport::tcp::localEndpoint(listener.get()));
  UniqueFd one = require(transport::tcp::beginConnect({kLoopback, "", 0}, where));
  for (;;) {
    UniqueFd other(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (other) return {std::move(one), std::move(other)};
  }
}

struct Measured {
  double microseconds = 0;
  double systemCalls = 0;
};

double threadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Both ends in turn, on this thread: its processor time.
template <typename End>
Measured together(const Options& options, End& one, End& other, Board& board) {
  const auto until = [&](TimePoint end) {
    while (now() < end) {
      one.poll();
      other.poll();
    }
  };
  one.begin();
  other.begin();
  until(now() + kWarmUp);
  const std::uint64_t trips = board.trips, calls = systemCallsMade();
  const double began = threadSeconds();
  until(now() + fromSeconds(options.seconds));
  const double messages = 2 * static_cast<double>(board.trips - trips);
  const double seconds = threadSeconds() - began;
  if (messages == 0) die("nothing came to and fro");
  return {seconds / messages * 1e6, static_cast<double>(systemCallsMade() - calls) / messages};
}

template <typename End>
void spin(End& end, int rank, Board& board) {
  end.begin();
  for (std::uint64_t polls = 0; !board.stop; ++polls) {
    end.poll();
    if (polls % kSeldom == 0) board.systemCalls[rank] = systemCallsMade();
  }
}

/// Half a round trip, between two processes that run `end(rank, board)`.
Measured apart(const Options& options, const std::function<void(int, Board&)>& end) {
  const auto board = share<Board>();
  std::array<pid_t, 2> children{};
  std::fflush(stdout);
  for (int rank = 0; rank < 2; ++rank) {
    children[rank] = bench::forkChild();
    if (children[rank] != 0) continue;
    end(rank, *board);
    _exit(0);
  }
  const auto calls = [&] { return board->systemCalls[0] + board->systemCalls[1]; };
  while (board->trips == 0) usleep(1000);
  usleep(static_cast<useconds_t>(duration_cast<std::chrono::microseconds>(kWarmUp).count()));
  const std::uint64_t trips = board->trips, before = calls();
  const TimePoint began = now();
  usleep(static_cast<useconds_t>(options.seconds * 1e6));
  const double messages = 2 * static_cast<double>(board->trips - trips);
  const double seconds = toSeconds(now() - began);
  const auto made = static_cast<double>(calls() - before);
  board->stop = true;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) die("an end failed");
  }
  if (messages == 0) die("nothing came to and fro");
  return {seconds / messages * 1e6, made / messages};
}

Measured ofFabric(const Options& options) {
  if (options.processes == 1) {
    Board board;
    FabricEnd one(options, 0, board), other(options, 1, board);
    one.connect(other.address());
    other.connect(one.address());
    while (!one.connected() || !other.connected()) {
      one.poll();
      other.poll();
    }
    return together(options, one, other, board);
  }
  std::array<int, 2> connection{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, connection.data()) != 0) {
    die("no socket pair");
  }
  const Measured measured = apart(options, [&](int rank, Board& board) {
    FabricEnd end(options, rank, board);
    const std::string mine = end.address();
    std::array<char, 1024> theirs;
    if (write(connection[rank], mine.data(), mine.size()) < 0) die("cannot tell the address");
    const ssize_t got = read(connection[rank], theirs.data(), theirs.size());
    if (got <= 0) die("the other end is gone");
    end.connect({theirs.data(), static_cast<std::size_t>(got)});
    while (!end.connected()) end.poll();
    spin(end, rank, board);
  });
  for (const int fd : connection) close(fd);
  return measured;
}

Measured ofPlain(const Options& options) {
  std::array<UniqueFd, 2> pair = connectedPair();
  if (options.processes == 1) {
    Board board;
    PlainEnd one(options, 0, std::move(pair[0]), board),
        other(options, 1, std::move(pair[1]), board);
    return together(options, one, other, board);
  }
  return apart(options, [&](int rank, Board& board) {
    PlainEnd end(options, rank, std::move(pair[rank]), board);
    spin(end, rank, board);
  });
}

void run(const Options& options) {
  std::vector<double> ours, plain, ratios;
  for (int round = 0; round < options.rounds; ++round) {
    const Measured fabric = ofFabric(options);
    const Measured tcp = ofPlain(options);
    ours.push_back(fabric.microseconds);
    plain.push_back(tcp.microseconds);
    ratios.push_back(fabric.microseconds / tcp.microseconds);
    fmt::print("{:8.2f} us, {:6.2f} calls    plain {:8.2f} us, {:6.2f} calls    ratio {:.3f}\n",
               fabric.microseconds, fabric.systemCalls, tcp.microseconds, tcp.systemCalls,
               ratios.back());
  }
  fmt::print("median: {:.2f} us, plain {:.2f} us, ratio {:.3f}\n", *stats::median(ours),
             *stats::median(plain), *stats::median(ratios));
}

}  // namespace
}  // namespace faultline

int main(int argc, char** argv) {
  faultline::Options options;
  CLI::App app{"A message to and fro between two processes, against plain TCP"};
  app.add_option("--message", options.message, "bytes")->check(CLI::Range(1, 1 << 24));
  app.add_option("--small", options.small, "bytes; messages that are copied when posted; 0: none")
      ->check(CLI::Range(0, 1 << 24));
  app.add_option("--rails", options.rails)->check(CLI::Range(1, 8));
  app.add_option("--outstanding", options.outstanding, "receives posted ahead")
      ->check(CLI::Range(1, 1024));
  app.add_option("--seconds", options.seconds, "of each measurement")
      ->check(CLI::Range(0.05, 60.0));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  app.add_option("--processes", options.processes)->check(CLI::Range(1, 2));
  CLI11_PARSE(app, argc, argv);
  faultline::run(options);
}
