#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/random.h"
#include "resilient_ccl/fabric/fabric.h"

// Real threads and sockets: two fabrics, each polled by a thread of its own, over four rails
// through relays that make rails slow and cut them in the middle of chunks. Every byte of every
// message is compared, and each buffer is used again at once: who still reads or writes one that
// was given back is seen, here or by the thread sanitizer. FAULTLINE_SEED=n runs one seed.

namespace faultline::fabric {
namespace {

constexpr std::uint32_t kHere = 0x7f000001;
constexpr int kRails = 4;
constexpr Duration kPatience = 60s;

std::byte contentOf(int sender, std::uint32_t message, std::size_t index) {
  // Every 8 bytes differ from those of every other message.
  const std::uint64_t word = Random::mix((std::uint64_t{message} << 32 | index >> 3) * 2 + sender);
  return static_cast<std::byte>(word >> (index % 8 * 8));
}

/// What both ends know of the messages: lengths, from the seed.
struct Plan {
  std::uint64_t seed;
  std::uint32_t messages;
  Bytes lengthOf(int sender, std::uint32_t message) const {
    const std::uint64_t word = Random::mix(seed ^ (message * 2 + sender));
    return static_cast<Bytes>(word % 8 == 0 ? word % 100 : word % 600'000);
  }
};

/// One process: sends and receives at the same time, a few messages each. A buffer is used for the
/// next message as soon as it is given back.
class End : public FabricClient {
 public:
  static constexpr std::uint32_t kOpen = 3;

  End(int self, const Plan& plan) : self_(self), plan_(plan), out_(kOpen), in_(kOpen) {}
  ~End() override {
    fabric.reset();
  }  // before the buffers, of which an I/O thread may be about to let go

  void start() {
    for (std::uint32_t buffer = 0; buffer < kOpen; ++buffer) {
      postSend(buffer);
      postReceive(buffer);
    }
  }
  void run(const std::atomic<int>& finished, std::atomic<int>& mine) {
    bool told = false;
    for (const TimePoint deadline = now() + kPatience; finished < 2 && now() < deadline;) {
      if (const Status status = fabric->poll(1ms); !status.ok()) error = status;
      const bool done = sent_ == plan_.messages && received_ == plan_.messages;
      if ((done || !error.ok()) && !std::exchange(told, true)) ++mine;
    }
    complete = told && error.ok();
    counters = fabric->counters();
    fabric->shutDown();
  }

  void sendDone(int, std::uint64_t buffer) override {
    ++sent_;
    std::ranges::fill(out_[buffer], std::byte{0xee});
    postSend(buffer);
  }
  void receiveDone(int, std::uint64_t buffer, Bytes length) override {
    ++received_;
    const auto& [message, got] = in_[buffer];
    if (length != plan_.lengthOf(1 - self_, message)) ++wrong;
    for (Bytes i = 0; i < length; ++i) wrong += got[i] != contentOf(1 - self_, message, i);
    postReceive(buffer);
  }
  void sendFailed(int, std::uint64_t, const Status& why) override { error = why; }
  void receiveFailed(int, std::uint64_t, const Status& why) override { error = why; }
  void failedOver(int, const channel::Failover&) override {}
  void failedBack(int, int, TimePoint) override {}
  void explained(int, int, channel::Cause, channel::Where) override {}
  void linkFailed(int, const Status& why) override { error = why; }

  std::unique_ptr<Fabric> fabric;
  std::uint64_t wrong = 0;
  bool complete = false;
  FabricCounters counters;
  Status error;

 private:
  struct Incoming {
    std::uint32_t message;
    std::vector<std::byte> region;
  };

  void postSend(std::uint64_t buffer) {
    if (nextSend_ == plan_.messages) return;
    const std::uint32_t message = nextSend_++;
    std::vector<std::byte>& data = out_[buffer];
    data.resize(plan_.lengthOf(self_, message));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = contentOf(self_, message, i);
    fabric->postSend(1 - self_, keyOf(self_, message), data.data(), data.size(), buffer);
  }
  void postReceive(std::uint64_t buffer) {
    if (nextReceive_ == plan_.messages) return;
    auto& [message, region] = in_[buffer];
    message = nextReceive_++;
    region.assign(plan_.lengthOf(1 - self_, message), std::byte{0xdd});
    fabric->postReceive(1 - self_, keyOf(1 - self_, message), region.data(), region.size(), buffer);
  }
  static channel::MessageKey keyOf(int sender, std::uint32_t message) {
    return {.communicator = 1, .sequence = message, .stream = static_cast<std::uint32_t>(sender)};
  }

  const int self_;
  const Plan plan_;
  std::vector<std::vector<std::byte>> out_;
  std::vector<Incoming> in_;
  std::uint32_t nextSend_ = 0, nextReceive_ = 0, sent_ = 0, received_ = 0;
};

/// Stands in for one listener: hands on what comes, at most so much per call, and can be cut.
class Relay {
 public:
  explicit Relay(const Endpoint& behind)
      : behind_(behind), listener_(transport::tcp::openListener({kHere, "", 0}).value()) {}

  Endpoint endpoint() const { return transport::tcp::localEndpoint(listener_.get()).value(); }

  /// Moves at most so many bytes in each direction of each connection: how many in all.
  std::size_t pump(std::size_t most) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      const int small = 16 << 10;  // little is on its way: the ends feel how slow the rail is
      setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
      auto onward = transport::tcp::beginConnect({kHere, "", 0}, behind_);
      if (onward.ok()) lines_.push_back({{std::move(socket), std::move(*onward)}, {}});
    }
    const std::size_t before = moved_;
    std::erase_if(lines_, [&](Line& line) { return !move(line, 0, most) || !move(line, 1, most); });
    return moved_ - before;
  }
  void cut() { lines_.clear(); }

 private:
  struct Line {
    UniqueFd ends[2];
    std::vector<std::byte> pending[2];  // read from this end, not yet written to the other
  };
  bool move(Line& line, int from, std::size_t most) {
    std::vector<std::byte>& pending = line.pending[from];
    if (pending.empty()) {
      pending.resize(most);
      const ssize_t got = recv(line.ends[from].get(), pending.data(), most, MSG_DONTWAIT);
      const bool ended = got == 0 || (got < 0 && errno != EAGAIN && errno != ENOTCONN);
      pending.resize(std::max<ssize_t>(got, 0));
      if (ended) return false;
    }
    if (pending.empty()) return true;
    const ssize_t sent = send(line.ends[1 - from].get(), pending.data(), pending.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      moved_ += static_cast<std::size_t>(sent);
      pending.erase(pending.begin(), pending.begin() + sent);
    }
    return sent >= 0 || errno == EAGAIN || errno == ENOTCONN;
  }

  Endpoint behind_;
  UniqueFd listener_;
  std::vector<Line> lines_;
  std::size_t moved_ = 0;
};

struct Variant {
  channel::Policy policy;
  int ioThreads;
  std::uint32_t messages;  // pinned ones wait for the slow rail
  friend void PrintTo(const Variant& variant, std::ostream* out) {
    *out << variant.ioThreads << " I/O threads";
  }
};

class CutRailsTest : public ::testing::TestWithParam<Variant> {
 protected:
  void runSeed(std::uint64_t seed) {
    Random random(seed);
    const Plan plan{.seed = random(), .messages = GetParam().messages};
    std::vector<std::unique_ptr<End>> ends;
    FabricOptions options;
    options.jobKey = auth::JobKey::random();
    options.nics.assign(kRails, {.device = "", .address = kHere});
    options.managementAddress = kHere;
    options.ioThreads = GetParam().ioThreads;
    options.link.policy = GetParam().policy;
    options.link.chunkBytes = 16 << 10;
    options.link.holdOff = 1ms;
    options.link.longestHoldOff = 10ms;
    std::vector<ProcessAddress> addresses;
    for (int i = 0; i < 2; ++i) {
      options.self = i;
      ends.push_back(std::make_unique<End>(i, plan));
      ends[i]->fabric = Fabric::create(options, *ends[i]).value();
      addresses.push_back(ends[i]->fabric->address());
    }
    std::vector<Relay> relays;
    for (auto& rail : addresses[1].rails) {
      relays.emplace_back(rail.data);
      rail.data = relays.back().endpoint();
    }
    std::atomic<int> finished{0};
    std::vector<std::thread> threads;
    for (auto& end : ends) {
      ASSERT_TRUE(end->fabric->connect(addresses).ok());
      end->start();
      threads.emplace_back([&] { end->run(finished, finished); });
    }
    // One rail is far slower than the others, not always the same one; now and then the rail that
    // has just carried something is cut. By bytes, so that it does not depend on the machine.
    std::size_t slow = random.below(kRails);
    std::uint64_t carried = 0, change = 0, cut = 0;
    for (const TimePoint deadline = now() + kPatience; finished < 2 && now() < deadline;) {
      constexpr std::size_t kFast = 64 << 10, kSlow = 1 << 10;
      for (std::size_t i = 0; i < relays.size(); ++i) {
        carried += relays[i].pump(i == slow ? kSlow : kFast);
        if (carried > change) {
          slow = random.below(kRails);
          change = carried + random.below(4 << 20);
        }
        if (carried < cut) continue;
        relays[i].cut();
        cut = carried + (256 << 10) + random.below(2 << 20);
      }
      std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& end : ends) {
      EXPECT_TRUE(end->complete) << end->error.message();
      EXPECT_EQ(end->wrong, 0u);
      failovers_ += end->counters.failovers;
      resent_ += end->counters.chunksResent;
      copied_ += end->counters.chunksCopied;
      duplicates_ += end->counters.chunksDuplicate;
    }
  }

  std::uint64_t failovers_ = 0, resent_ = 0, copied_ = 0, duplicates_ = 0;
};

TEST_P(CutRailsTest, NoByteIsLostAndNoneComesLate) {
  constexpr std::uint64_t kSeeds = 2;
  const char* const one = std::getenv("FAULTLINE_SEED");
  const std::uint64_t first = one == nullptr ? 0 : std::strtoull(one, nullptr, 10);
  for (std::uint64_t seed = first; seed < first + (one == nullptr ? kSeeds : 1); ++seed) {
    SCOPED_TRACE(fmt::format("FAULTLINE_SEED={}", seed));
    runSeed(seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(failovers_, 0u);
  EXPECT_GT(resent_, 0u);
  if (GetParam().policy == channel::Policy::kPull) {
    EXPECT_GT(copied_, 0u) << "no chunk went over two rails";
    EXPECT_GT(duplicates_, 0u);
  }
  RecordProperty("failovers", static_cast<int>(failovers_));
  RecordProperty("copied", static_cast<int>(copied_));
  std::printf("failovers %lu, resent %lu, copied %lu, duplicates %lu\n", failovers_, resent_,
              copied_, duplicates_);
}

INSTANTIATE_TEST_SUITE_P(Variants, CutRailsTest,
                         ::testing::Values(Variant{channel::Policy::kPull, 0, 40},
                                           Variant{channel::Policy::kPull, 1, 40},
                                           Variant{channel::Policy::kPull, 3, 40},
                                           Variant{channel::Policy::kPinned, 2, 12}),
                         [](const auto& variant) {
                           const bool pull = variant.param.policy == channel::Policy::kPull;
                           return fmt::format("{}With{}IoThreads", pull ? "Pull" : "Pinned",
                                              variant.param.ioThreads);
                         });

}  // namespace
}  // namespace faultline::fabric
