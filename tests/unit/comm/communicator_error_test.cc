#include <gtest/gtest.h>
#include <sys/socket.h>

#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "resilient_ccl/comm/communicator.h"
#include "tests/unit/comm/thread_job.h"

// What goes wrong in a job, and that every rank is told the same, with names.

namespace faultline::comm {
namespace {

TEST(CommunicatorErrorTest, AbortOnOneRankIsAnErrorOnAll) {
  runJob(3, [&](Communicator& comm) {
    std::vector<float> data(1000);
    std::shared_ptr<Work> work;
    if (comm.rank() == 1) {
      comm.abort("rank 1's loss is not a number");
      work = comm.barrier();
    } else {
      work = comm.allReduce(data.data(), data.data(), 1000, DataType::kF32, ReduceOp::kSum);
    }
    const Status status = work->wait();
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_NE(status.message().find("not a number"), std::string::npos) << status.message();
  });
}

TEST(CommunicatorErrorTest, AProcessThatVanishesIsNamedOnAllOthers) {
  runJob(3, [&](Communicator& comm) {
    if (comm.rank() == 2) return;  // destroyed without goodbye
    std::vector<float> data(1000);
    const Status status =
        comm.allReduce(data.data(), data.data(), 1000, DataType::kF32, ReduceOp::kSum)->wait();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
  });
}

/// Ends all TCP connections of this process with `port`, as a firewall may.
int endConnectionsWith(std::uint16_t port) {
  int ended = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family == AF_INET && ntohs(peer.sin_port) == port) {
      ended += shutdown(fd, SHUT_RDWR) == 0;
    }
  }
  return ended;
}

TEST(CommunicatorErrorTest, ManagementConnectionsThatEndHarmNobody) {
  constexpr int kRanks = 3;
  std::uint16_t port = 0;
  std::mutex mutex;
  std::latch joined(kRanks), ended(1);
  runJob(
      kRanks,
      [&](Communicator& comm) {
        joined.arrive_and_wait();
        if (comm.rank() == 0) {
          EXPECT_EQ(endConnectionsWith(port), kRanks - 1);
          ended.count_down();
        }
        ended.wait();
        std::vector<std::int32_t> data(100'000);
        for (const TimePoint end = now() + 300ms;;) {
          std::ranges::fill(data, 1);
          const Status status = comm.allReduce(data.data(), data.data(), std::ssize(data),
                                               DataType::kI32, ReduceOp::kSum)
                                    ->wait();
          ASSERT_TRUE(status.ok()) << status.message();
          const bool last = now() >= end;  // all must agree on the last one
          std::int32_t votes = last;
          ASSERT_TRUE(
              comm.allReduce(&votes, &votes, 1, DataType::kI32, ReduceOp::kMax)->wait().ok());
          if (votes != 0) break;
        }
        const Status left = comm.finish();
        EXPECT_TRUE(left.ok()) << left.message();
      },
      [&](CommunicatorOptions& options) {
        const std::lock_guard lock(mutex);
        port = options.rendezvous.port;
      });
}

TEST(CommunicatorErrorTest, WhoTakesNoPartIsNamedOnAllRanks) {
  std::mutex mutex;
  std::set<std::string> said;
  std::latch waited(2);
  runJob(
      3,
      [&](Communicator& comm) {
        ASSERT_TRUE(comm.barrier()->wait().ok());
        if (comm.rank() == 1) waited.wait();  // a data loader that hangs
        const Status status = comm.barrier()->wait();
        if (comm.rank() != 1) waited.count_down();
        const std::lock_guard lock(mutex);
        said.emplace(status.message());
      },
      [](CommunicatorOptions& options) {
        options.collectiveTimeout = 500ms;
        options.fabric.link.giveUp = 400ms;  // has nothing to do with it
      });
  ASSERT_EQ(said.size(), 1u) << *said.begin() << " / " << *said.rbegin();
  EXPECT_NE(said.begin()->find("collective 1 of communicator 1 is not done within 500ms: rank(s) "
                               "1 have not called it, rank(s) 0, 2 wait"),
            std::string::npos)
      << *said.begin();
}

TEST(CommunicatorErrorTest, AMessageThatNobodySendsIsAnErrorToo) {
  std::latch waited(1);
  runJob(
      2,
      [&](Communicator& comm) {
        if (comm.rank() == 1) return waited.wait();
        float value = 0;
        const Status status = comm.receive(&value, 1, DataType::kF32, 1)->wait();
        EXPECT_NE(status.message().find("a message from rank 1 is not done"), std::string::npos)
            << status.message();
        waited.count_down();
      },
      [](CommunicatorOptions& options) { options.collectiveTimeout = 300ms; });
}

TEST(CommunicatorErrorTest, ASplitWhoseEndIsNotCalledByAllIsAnErrorToo) {
  std::latch waited(2);
  runJob(
      3,
      [&](Communicator& comm) {
        auto part = comm.split(0, 0);
        ASSERT_TRUE(part.ok());
        if (comm.rank() == 2) return waited.wait();
        const Status status = (*part)->finish();
        EXPECT_NE(status.message().find("rank(s) 2 have not called it"), std::string::npos)
            << status.message();
        waited.count_down();
      },
      [](CommunicatorOptions& options) { options.collectiveTimeout = 300ms; });
}

TEST(CommunicatorErrorTest, WhoDoesNotSayGoodbyeIsNamed) {
  std::latch waited(2);
  runJob(
      3,
      [&](Communicator& comm) {
        if (comm.rank() == 1) return waited.wait();
        const Status status = comm.finish();
        EXPECT_NE(status.message().find("rank(s) 1 did not say goodbye"), std::string::npos)
            << status.message();
        waited.count_down();
      },
      [](CommunicatorOptions& options) { options.setupTimeout = 2s; });
}

TEST(CommunicatorErrorTest, WaitingForEverAndAKeyThatEverybodyKnowsAreRefused) {
  CommunicatorOptions options = optionsOf(0, 2, freePort());
  options.setupTimeout = 100ms;
  options.collectiveTimeout = {};
  EXPECT_EQ(Communicator::create(options).status().code(), Code::kInvalidArgument);
  options.collectiveTimeout = 1s;
  options.fabric.jobKey = {};
  EXPECT_EQ(Communicator::create(options).status().code(), Code::kInvalidArgument);
  options.size = 1;  // there is nobody to hide it from
  EXPECT_TRUE(Communicator::create(options).ok());
}

TEST(CommunicatorErrorTest, WhateverSeveralRanksSayAtOnceAllReturnTheSame) {
  std::mutex mutex;
  std::set<std::string> said;
  for (int round = 0; round < 5; ++round) {
    runJob(4, [&](Communicator& comm) {
      if (comm.rank() != 2) comm.abort(fmt::format("nonsense on {}", comm.rank()));
      const std::string message(comm.barrier()->wait().message());
      const std::lock_guard lock(mutex);
      said.insert(message);
    });
    EXPECT_EQ(said.size(), 1u) << *said.begin() << " / " << *said.rbegin();
    said.clear();
  }
}

TEST(CommunicatorErrorTest, TheReasonOfAnAbortIsHeardAlthoughItsAuthorLeavesAtOnce) {
  for (int round = 0; round < 3; ++round) {
    runJob(2, [](Communicator& comm) {
      if (comm.rank() == 1) return comm.abort("the loss is not a number");
      const Status status = comm.barrier()->wait();
      EXPECT_NE(status.message().find("not a number"), std::string::npos) << status.message();
    });
  }
}

TEST(CommunicatorErrorTest, ACallAfterTheEndIsAnError) {
  runJob(2, [](Communicator& comm) {
    EXPECT_TRUE(comm.finish().ok());
    const auto work = comm.barrier();
    ASSERT_TRUE(work->test());
    EXPECT_FALSE(work->wait().ok());
  });
}

TEST(CommunicatorErrorTest, MissingRanksAreNamed) {
  CommunicatorOptions options = optionsOf(0, 3, freePort());
  options.setupTimeout = 100ms;
  const auto comm = Communicator::create(options);
  ASSERT_FALSE(comm.ok());
  EXPECT_NE(comm.status().message().find("rank(s) 1, 2"), std::string::npos)
      << comm.status().message();
}

TEST(CommunicatorErrorTest, ARankOfAnotherJobDoesNotJoin) {
  const std::uint16_t port = freePort();
  std::vector<Status> ends(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&ends, rank, port] {
      CommunicatorOptions options = optionsOf(rank, 2, port);
      options.fabric.jobKey = auth::JobKey::random();
      options.setupTimeout = 300ms;
      ends[rank] = Communicator::create(options).status();
    });
  }
  for (auto& thread : ranks) thread.join();
  EXPECT_NE(ends[0].message().find("rank(s) 1"), std::string::npos) << ends[0].message();
  EXPECT_FALSE(ends[1].ok());
}

TEST(CommunicatorErrorTest, SlicesThatCutAnElementAreRefused) {
  CommunicatorOptions options = optionsOf(0, 1, freePort());
  for (const Bytes slice : {0, 12, -8}) {
    options.sliceBytes = slice;
    EXPECT_EQ(Communicator::create(options).status().code(), Code::kInvalidArgument);
  }
  options.sliceBytes = 8;
  options.window = 0;
  EXPECT_EQ(Communicator::create(options).status().code(), Code::kInvalidArgument);
}

TEST(CommunicatorErrorTest, UnknownAlgorithmIsAnErrorOfTheCall) {
  const std::uint16_t port = freePort();
  CommunicatorOptions options = optionsOf(0, 1, port);
  options.algorithm = "no_such";
  auto comm = Communicator::create(options);
  ASSERT_TRUE(comm.ok());
  float value = 1;
  EXPECT_FALSE((*comm)->allReduce(&value, &value, 1, DataType::kF32, ReduceOp::kSum)->wait().ok());
}

}  // namespace
}  // namespace faultline::comm
