// Real processes over loopback, killed and stopped.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/comm/thread_job.h"

namespace faultline::comm {
namespace {

/// The rank processes of one job, none of which outlives this.
class ProcessJob {
 public:
  /// Each runs `life`, which says whether all was right.
  ProcessJob(int size, const std::function<bool(const CommunicatorOptions&)>& life) {
    const std::uint16_t port = freePort();
    for (int rank = 0; rank < size; ++rank) {
      const CommunicatorOptions options = optionsOf(rank, size, port);
      const pid_t child = fork();
      if (child == 0) _exit(life(options) ? 0 : 1);
      ranks_.push_back(child);
    }
  }
  ~ProcessJob() {
    for (const pid_t child : ranks_) {
      if (child <= 0) continue;
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  void signal(int rank, int number) const { ASSERT_EQ(kill(ranks_[rank], number), 0); }
  /// The exit status of a rank, once it has ended.
  int end(int rank) {
    int status = -1;
    waitpid(ranks_[rank], &status, 0);
    ranks_[rank] = -1;
    return status;
  }

 private:
  std::vector<pid_t> ranks_;
};

bool reduces(Communicator& comm) {
  std::vector<std::int64_t> data(10'000, 1);
  const Status status =
      comm.allReduce(data.data(), data.data(), std::ssize(data), DataType::kI64, ReduceOp::kSum)
          ->wait();
  return status.ok() && data == std::vector<std::int64_t>(data.size(), comm.size());
}

/// A pipe on which a rank says that it works.
struct Sign {
  int ends[2];
  Sign() { EXPECT_EQ(pipe(ends), 0); }
  ~Sign() {
    close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
  }
  void give() const { (void)!write(ends[1], "x", 1); }
  /// False: nobody is left who could give it. Ends this process's own part in giving.
  bool await() {
    if (ends[1] >= 0) close(std::exchange(ends[1], -1));
    // Not for ever: a process that is stopped keeps its end open, whatever becomes of the others.
    constexpr int kLongMilliseconds = 30'000;
    pollfd end{.fd = ends[0], .events = POLLIN, .revents = 0};
    char byte;
    return ::poll(&end, 1, kLongMilliseconds) == 1 && read(ends[0], &byte, 1) == 1;
  }
};

TEST(ShrinkProcessTest, AKilledProcessIsMissedByNobody) {
  for (const int dead : {0, 1, 2}) {
    Sign working;
    ProcessJob job(3, [&](const CommunicatorOptions& options) {
      auto comm = Communicator::create(options);
      if (!comm.ok()) return false;
      // That it has worked says that all have begun; others may not have what it gave them.
      if (options.rank == dead && reduces(**comm)) working.give();
      while (reduces(**comm)) {
      }
      auto shrunk = (*comm)->shrink();
      return shrunk.ok() && shrunk->communicator->size() == 2 && reduces(*shrunk->communicator) &&
             shrunk->communicator->finish().ok();
    });
    ASSERT_TRUE(working.await());
    job.signal(dead, SIGKILL);
    for (int rank = 0; rank < 3; ++rank) {
      const int status = job.end(rank);
      EXPECT_EQ(status, rank == dead ? SIGKILL : 0) << "rank " << rank << ", killed: " << dead;
    }
  }
}

TEST(ShrinkProcessTest, AStoppedProcessIsLeftOutAndIsToldSoWhenItGoesOn) {
  Sign working, others;
  ProcessJob job(3, [&](CommunicatorOptions options) {
    options.fabric.link.giveUp = 300ms;
    auto comm = Communicator::create(options);
    if (!comm.ok()) return false;
    if (options.rank == 1 && reduces(**comm)) working.give();
    while (reduces(**comm)) {
    }
    auto shrunk = (*comm)->shrink(200ms);
    if (options.rank == 1) return shrunk.status().code() == Code::kUnavailable;
    if (!shrunk.ok()) fmt::print(stderr, "{}\n", shrunk.status().message());
    if (!shrunk.ok() || shrunk->communicator->size() != 2 || !reduces(*shrunk->communicator)) {
      return false;
    }
    others.give();
    // They work on while the other asks, for about 1.5 s; both as often.
    for (int round = 0; round < 30; ++round) {
      if (!reduces(*shrunk->communicator)) return false;
      std::this_thread::sleep_for(50ms);
    }
    return shrunk->communicator->finish().ok();
  });
  ASSERT_TRUE(working.await());
  job.signal(1, SIGSTOP);
  EXPECT_TRUE(others.await());
  EXPECT_TRUE(others.await());
  job.signal(1, SIGCONT);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(job.end(rank), 0) << rank;
}

}  // namespace
}  // namespace faultline::comm
