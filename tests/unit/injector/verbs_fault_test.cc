// The controller's fault, against a shim that says what the test wants.
#include "injector/faults/verbs_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "injector/faults/registry.h"
#include "injector/verbs/wire.h"
#include "tests/support/fake_shim.h"

namespace faultline::injector {
namespace {

using faultline::testing::FakeShim;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class VerbsFaultTest : public ::testing::Test {
 protected:
  verbs::Message answer(const verbs::Message& request) {
    verbs::Message reply("ok");
    if (request.verb() == "hello") {
      addShimFacts(reply, {.pid = static_cast<std::uint64_t>(::getpid())});
    } else if (request.verb() == "arm") {
      reply.add("fault", 1);
    } else if (request.verb() == "disarm" && leaseEnded_) {
      return verbs::errorMessage(errorf(Code::kNotFound, "its lease ended"));
    } else {
      addCounters(reply, {.happened = 3});
    }
    return reply;
  }

  std::atomic<bool> leaseEnded_{false};
  FakeShim shim_{[this](const verbs::Message& request) { return answer(request); }};
  VerbsFault fault_{verbs::Effect::kPostError,
                    *FaultParameters::parse(*findFaultKind("post_error"), {}), program(::getpid())};
};

// This process was stopped between its last look and the end: the shim knows better than it.
TEST_F(VerbsFaultTest, ALeaseThatEndedUnnoticedIsToldAfterTheEnd) {
  ASSERT_TRUE(fault_.prepare().ok());
  const TimePoint begin = now();
  ASSERT_TRUE(fault_.apply().ok());
  const auto evidence = fault_.evidence();
  ASSERT_TRUE(evidence.ok()) << evidence.status().message();
  EXPECT_TRUE(evidence->ok);
  EXPECT_FALSE(fault_.lapsedAt());
  leaseEnded_ = true;
  ASSERT_TRUE(fault_.revert().ok()) << "it is whole again, whoever did it";
  ASSERT_TRUE(fault_.lapsedAt());
  EXPECT_GE(*fault_.lapsedAt(), begin + 2s) << "as long as the lease";
  EXPECT_LE(*fault_.lapsedAt(), now() + 2s);
  leaseEnded_ = false;
  ASSERT_TRUE(fault_.apply().ok());
  ASSERT_TRUE(fault_.revert().ok());
  EXPECT_FALSE(fault_.lapsedAt()) << "this time it was taken back";
}

/// One more process, whose shim says what the test wants.
class OtherProcess {
 public:
  explicit OtherProcess(const FakeShim::Answer& answer) {
    std::array<int, 2> ready{};
    std::array<int, 2> life{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    EXPECT_EQ(::pipe(life.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(life[1]);
      char byte = 0;
      {
        const FakeShim shim(answer);
        if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
        [[maybe_unused]] const ssize_t end = ::read(life[0], &byte, 1);
      }
      ::_exit(0);
    }
    ::close(ready[1]);
    ::close(life[0]);
    life_.reset(life[1]);
    const UniqueFd is_ready(ready[0]);
    char byte = 0;
    EXPECT_EQ(::read(is_ready.get(), &byte, 1), 1) << "it has no shim";
  }
  ~OtherProcess() {
    life_.reset();
    ::waitpid(pid_, nullptr, 0);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  UniqueFd life_;
};

/// Two processes with shims, this one being the first.
class TwoProcesses {
 public:
  TwoProcesses(const FakeShim::Answer& own, const FakeShim::Answer& others)
      : other_(others), shim_(own) {}

  /// `fault` in both of them.
  std::unique_ptr<VerbsFault> fault(std::string_view kind,
                                    const std::map<std::string, std::string>& texts) const {
    const std::vector<pid_t> pids{::getpid(), other_.pid()};
    const auto parameters = FaultParameters::parse(*findFaultKind(kind), texts);
    EXPECT_TRUE(parameters.ok()) << parameters.status().message();
    auto fault = std::make_unique<VerbsFault>(
        *verbs::findEffect(kind), *parameters,
        VerbsPrograms{[pids]() -> Result<std::vector<pid_t>> { return pids; }, false, {}});
    EXPECT_TRUE(fault->prepare().ok());
    return fault;
  }

 private:
  OtherProcess other_;  // before this one has threads
  FakeShim shim_;
};

constexpr Duration kLookEvery = 5ms;  ///< as often as it asks

/// Completions are held back, and so many bytes are let through between two looks.
FakeShim::Answer pacedBy(std::uint64_t bytes) {
  return [bytes, looks = std::uint64_t{0}](const verbs::Message& request) mutable {
    verbs::Message reply("ok");
    if (request.verb() == "hello") {
      addShimFacts(reply, {});
    } else if (request.verb() == "arm") {
      reply.add("fault", 1);
    } else {
      ++looks;
      addCounters(reply, {.held = 1, .released = looks, .releasedBytes = looks * bytes});
    }
    return std::optional(reply);
  };
}

/// The evidence after both have been looked at for a while.
Evidence rateOf(std::uint64_t own_bytes, std::uint64_t others_bytes) {
  const TwoProcesses processes(pacedBy(own_bytes), pacedBy(others_bytes));
  const auto fault = processes.fault("qp_rate", {{"rate", "8Mbit"}});
  EXPECT_TRUE(fault->apply().ok());
  // The test's own time, ahead of the clock: the second look at one moment waits for the answers to
  // the first, whatever the machine is busy with.
  const TimePoint begin = now() + 1h;
  for (Duration at{}; at <= 500ms; at += kLookEvery) {
    EXPECT_TRUE(fault->step(begin + at).ok());
    EXPECT_TRUE(fault->step(begin + at).ok());
  }
  const auto evidence = fault->evidence();
  EXPECT_TRUE(evidence.ok()) << evidence.status().message();
  EXPECT_TRUE(fault->revert().ok());
  return evidence.ok() ? *evidence : Evidence{};
}

TEST(VerbsFaultInTwoProcessesTest, EachHasTheRateForItself) {
  constexpr std::uint64_t kAtTheRate = 5000;  // in 5 ms: 8 Mbit/s
  const Evidence kept = rateOf(kAtTheRate - 100, kAtTheRate / 2);
  EXPECT_TRUE(kept.ok) << kept.observed;
  EXPECT_THAT(kept.observed,
              StartsWith("4.00 to 7.84 Mbit/s in 2 of 2 processes for 8Mbit requested in each"));
  const Evidence exceeded = rateOf(kAtTheRate / 2, kAtTheRate * 6 / 5);
  EXPECT_FALSE(exceeded.ok) << exceeded.observed;
  EXPECT_THAT(exceeded.observed, StartsWith("4.00 to 9.60 Mbit/s in 2 of 2 processes"));
}

/// Has queue pairs of these numbers, and counts as bytes the number of the one that is armed.
FakeShim::Answer withQueuePairs(std::vector<std::uint32_t> numbers, bool they_go_away = false) {
  return [=, armed = std::uint64_t{0}](const verbs::Message& request) mutable {
    verbs::Message reply("ok");
    if (request.verb() == "hello") {
      addShimFacts(reply, {});
    } else if (request.verb() == "list") {
      reply.add("total", numbers.size());
      for (const std::uint32_t number : numbers) {
        reply.add("qp", verbs::writeFacts({"fake0", number, 1, 0, "", "RC", "RTS"}));
      }
    } else if (request.verb() == "arm") {
      const auto rule = verbs::readRule(request);
      armed = rule.ok() && rule->match.number != 0 ? rule->match.number : numbers.front();
      if (they_go_away || std::ranges::count(numbers, armed) == 0) {
        return std::optional(verbs::errorMessage(errorf(Code::kNotFound, "no queue pair")));
      }
      reply.add("fault", 1);
    } else {
      addCounters(reply, {.bytes = armed, .happened = 1});
    }
    return std::optional(reply);
  };
}

/// Which one qp_error with `pick: one` has struck, if there was only one.
std::uint64_t struck(const TwoProcesses& processes, std::uint64_t seed,
                     const std::string& number = "0") {
  const auto fault = processes.fault("qp_error", {{"seed", std::to_string(seed)}, {"qpn", number}});
  const Status applied = fault->apply();
  EXPECT_TRUE(applied.ok()) << applied.message();
  EXPECT_TRUE(fault->revert().ok());
  EXPECT_EQ(fault->counters().happened, 1u) << "in both of them";
  return fault->counters().bytes;
}

TEST(VerbsFaultInTwoProcessesTest, OneQueuePairOfAllIsChosenByTheSeed) {
  const TwoProcesses processes(withQueuePairs({12, 11, 13}), withQueuePairs({22, 21}));
  const std::array<std::uint64_t, 5> all{11, 12, 13, 21, 22};
  std::set<std::uint64_t> chosen;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const std::uint64_t number = struck(processes, seed);
    EXPECT_EQ(number, all[verbs::chooseOne(all.size(), seed)]) << "seed " << seed;
    chosen.insert(number);
  }
  EXPECT_EQ(chosen.size(), all.size());
  EXPECT_EQ(struck(processes, 1, "13"), 13u);
  EXPECT_EQ(struck(processes, 1, "22"), 22u);
}

TEST(VerbsFaultInTwoProcessesTest, OneThatHasGoneMeanwhileIsNotChosen) {
  const TwoProcesses processes(withQueuePairs({11, 12, 13}, /*they_go_away=*/true),
                               withQueuePairs({21, 22}));
  std::set<std::uint64_t> chosen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) chosen.insert(struck(processes, seed));
  EXPECT_EQ(chosen, (std::set<std::uint64_t>{21, 22}));
}

TEST(VerbsFaultInTwoProcessesTest, WhereNobodyHasOneThereIsNothingToChoose) {
  const TwoProcesses processes(withQueuePairs({11}), withQueuePairs({21}));
  const auto fault = processes.fault("qp_error", {{"qpn", "31"}});
  const Status applied = fault->apply();
  EXPECT_EQ(applied.code(), Code::kNotFound);
  EXPECT_THAT(applied.message(), HasSubstr("none of the 2 processes with the verbs shim has queue "
                                           "pair 31 in use (of 0 that fit)"));
}

TEST(VerbsFaultInTwoProcessesTest, WhereNoneIsInUseThereIsNothingToChoose) {
  const TwoProcesses processes(withQueuePairs({11}, /*they_go_away=*/true),
                               withQueuePairs({21, 22}, /*they_go_away=*/true));
  const auto fault = processes.fault("qp_error", {});
  const Status applied = fault->apply();
  EXPECT_EQ(applied.code(), Code::kNotFound);
  EXPECT_THAT(applied.message(), HasSubstr("in use (of 3 that fit)"));
}

}  // namespace
}  // namespace faultline::injector
