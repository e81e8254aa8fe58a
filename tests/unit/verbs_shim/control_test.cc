#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "base/random.h"
#include "base/unique_fd.h"
#include "injector/verbs/address.h"
#include "injector/verbs/message.h"
#include "injector/verbs/wire.h"
#include "tests/unit/verbs_shim/shim_fixture.h"

// A child of a program with threads makes threads itself, as programs do; the thread sanitizer ends
// it for that unless it is told not to. Not used without it.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace faultline::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A connection without manners.
UniqueFd rawConnection() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path =
      injector::verbs::socketPath(injector::verbs::defaultFolder(::geteuid()), ::getpid(),
                                  injector::verbs::pidNamespaceOf("self"));
  std::strcpy(address.sun_path, path.c_str());
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

class ControlTest : public ShimTest {
 protected:
  /// Somebody else opens the first device.
  static Connection connectWhenReady() {
    EXPECT_TRUE(becomes([] { return Connection::open(::getpid()).ok(); }));
    return connect();
  }
};

TEST_F(ControlTest, WhatWasGivenUpIsNotArmedLater) {
  Device device(0);
  ibv_qp* const first = device.makeQp();
  ibv_qp* const second = device.makeQp();
  Connection control = connect();
  UniqueFd hasty = rawConnection();
  injector::verbs::Message arm("arm");
  injector::verbs::addRule(arm, rule(Effect::kQpError, second));
  const std::string packet = arm.serialize();
  fake().blockModify(true);  // the control thread, with the first
  std::thread armer([&] { valueOf(control.arm(rule(Effect::kQpError, first))); });
  EXPECT_TRUE(becomes([] { return fake().blocked() == 1; }));
  EXPECT_EQ(::send(hasty.get(), packet.data(), packet.size(), 0),
            static_cast<ssize_t>(packet.size()));
  hasty.reset();
  fake().blockModify(false);
  armer.join();
  EXPECT_EQ(valueOf(control.hello()).armed, 1u);
  EXPECT_EQ(first->state, IBV_QPS_ERR);
  EXPECT_EQ(second->state, IBV_QPS_RTS);
}

TEST_F(ControlTest, ListsQueuePairsWithTheirPeersAndStates) {
  Device device(1);
  ibv_qp* const qp = device.makeQp(42);
  ibv_qp_attr address{};
  address.ah_attr.dlid = 9;
  address.ah_attr.is_global = 1;
  address.ah_attr.grh.dgid.raw[0] = 0xfe;
  address.ah_attr.grh.dgid.raw[1] = 0x80;
  address.ah_attr.grh.dgid.raw[15] = 1;
  shimLibrary().modifyQp(qp, &address, IBV_QP_AV);
  Connection control = connect();
  EXPECT_THAT(valueOf(control.list()), ::testing::ElementsAre(QueuePairFacts{
                                           "fake1", qp->qp_num, 42, 9, "fe80::1", "RC", "RTS"}));
  putInState(qp, IBV_QPS_RESET);
  EXPECT_EQ(valueOf(control.list()).at(0),
            (QueuePairFacts{"fake1", qp->qp_num, 0, 0, "", "RC", "RESET"}));
  const auto facts = valueOf(control.hello());
  EXPECT_EQ(facts.pid, static_cast<std::uint64_t>(::getpid()));
  EXPECT_EQ(facts.contexts, 1u);
  EXPECT_EQ(facts.missedContexts, 0u);
  EXPECT_EQ(facts.queuePairs, 1u);
}

TEST_F(ControlTest, ListsManyInPages) {
  Device device(0);
  for (int i = 0; i < 250; ++i) device.makeQp();
  const auto all = valueOf(connect().list());
  ASSERT_THAT(all, SizeIs(250));
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].number, all[i].number);
}

TEST_F(ControlTest, NoQueuePairMeantIsAnError) {
  Device device(0);
  device.makeQp();
  Connection control = connect();
  Rule other = rule(Effect::kPostError);
  other.match.device = "mlx5_7";
  const auto armed = control.arm(other);
  EXPECT_EQ(armed.status().code(), Code::kNotFound);
  EXPECT_THAT(armed.status().message(), HasSubstr("mlx5_7"));
  EXPECT_EQ(valueOf(control.hello()).armed, 0u);
}

TEST_F(ControlTest, AQueuePairThatIsConnectedLaterIsMeantToo) {
  Device device(0);
  device.makeQp(7);
  Connection control = connect();
  Rule peer = rule(Effect::kPostError);
  peer.match.peerNumber = 7;
  const std::uint64_t fault = valueOf(control.arm(peer));
  ibv_qp* const later = device.makeQp(8);
  EXPECT_EQ(postSend(later, 1), 0);
  Device::connect(later, 7);
  EXPECT_EQ(postSend(later, 1), ENOMEM);
  EXPECT_EQ(valueOf(control.counters(fault)).queuePairs, 2u);
}

TEST_F(ControlTest, AFaultEndsWithItsConnection) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  {
    Connection control = connect();
    valueOf(control.arm(rule(Effect::kPostError, qp)));
    EXPECT_EQ(postSend(qp, 1), ENOMEM);
  }
  EXPECT_TRUE(becomes([&] { return postSend(qp, 2) == 0; }));
}

TEST_F(ControlTest, AFaultEndsWhenItsControllerIsSilentAndLastsWhileItIsNot) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule brief = rule(Effect::kPostError, qp);
  brief.lease = 400ms;
  const std::uint64_t fault = valueOf(control.arm(brief));
  for (int i = 0; i < 8; ++i) {
    ::poll(nullptr, 0, 100);
    EXPECT_TRUE(control.counters(fault).ok()) << i;  // renews
  }
  EXPECT_EQ(postSend(qp, 1), ENOMEM);
  EXPECT_TRUE(becomes([&] { return postSend(qp, 1) == 0; }));
  EXPECT_EQ(control.counters(fault).status().code(), Code::kNotFound);
  EXPECT_EQ(control.disarm(fault).status().code(), Code::kNotFound);
}

TEST_F(ControlTest, OneControllersFaultIsNotAnothers) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection first = connect();
  Connection second = connect();
  const std::uint64_t fault = valueOf(first.arm(rule(Effect::kPostError, qp)));
  EXPECT_EQ(second.disarm(fault).status().code(), Code::kNotFound);
  EXPECT_EQ(postSend(qp, 1), ENOMEM);
  EXPECT_TRUE(first.disarm(fault).ok());
}

TEST_F(ControlTest, ThereIsALimitToFaultsAndItIsTold) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  Rule never = rule(Effect::kPostError, qp);
  never.trigger.afterOperations = 1'000'000;
  std::vector<std::uint64_t> faults;
  for (int i = 0; i < 32; ++i) faults.push_back(valueOf(control.arm(never)));
  EXPECT_EQ(control.arm(never).status().code(), Code::kUnavailable);
  valueOf(control.disarm(faults[7]));
  EXPECT_TRUE(control.arm(never).ok());
  EXPECT_EQ(postSend(qp, 1), 0);
  EXPECT_EQ(valueOf(control.counters(faults[31])).operations, 1u);
}

TEST_F(ControlTest, GarbageIsAnsweredWithAnErrorAndTheRestGoesOn) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kPostError, qp)));
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const UniqueFd fd = rawConnection();
    std::string packet = seed % 2 == 0 ? "faultline-verbs 4 arm\n" : "";
    for (std::uint64_t i = random.below(300) + 1; i > 0; --i) {
      packet += static_cast<char>(random.below(256));
    }
    ASSERT_GT(::send(fd.get(), packet.data(), packet.size(), MSG_NOSIGNAL), 0);
    std::array<char, 4096> answer{};
    const ssize_t got = ::recv(fd.get(), answer.data(), answer.size(), 0);
    ASSERT_GT(got, 0) << seed;
    EXPECT_THAT(std::string(answer.data(), static_cast<std::size_t>(got)),
                HasSubstr("faultline-verbs 4 error\n"));
  }
  EXPECT_TRUE(control.counters(fault).ok());
  EXPECT_EQ(valueOf(control.hello()).armed, 1u);
  EXPECT_THAT(postSend(qp, 1), ENOMEM);
}

TEST_F(ControlTest, UnknownWordsAndFieldsAreErrors) {
  Device device(0);
  const auto ask = [](const injector::verbs::Message& message) {
    const UniqueFd fd = rawConnection();
    const std::string packet = message.serialize();
    ::send(fd.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
    std::array<char, 4096> answer{};
    const ssize_t got = ::recv(fd.get(), answer.data(), answer.size(), 0);
    return std::string(answer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  };
  EXPECT_THAT(ask(injector::verbs::Message("explode")), HasSubstr("code=unsupported"));
  injector::verbs::Message hello("hello");
  hello.add("more", 1);
  EXPECT_THAT(ask(hello), HasSubstr("code=invalid_argument"));
  EXPECT_THAT(ask(injector::verbs::Message("list")), HasSubstr("code=invalid_argument"));
  EXPECT_THAT(ask(injector::verbs::Message("disarm")), HasSubstr("code=invalid_argument"));
}

TEST_F(ControlTest, ThereIsALimitToControllersWithFaultsAndItIsTold) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  // Those of the test before this one may be there for a moment.
  const auto connected = [&] {
    auto connection = Connection::open(::getpid());
    return connection.ok() && connection->arm(rule(Effect::kPostError, qp)).ok()
               ? std::optional(*std::move(connection))
               : std::nullopt;
  };
  std::vector<Connection> all;
  EXPECT_TRUE(becomes([&] {
    auto one = connected();
    if (one) all.push_back(*std::move(one));
    return all.size() == 16;
  }));
  auto refused = Connection::open(::getpid());
  ASSERT_TRUE(refused.ok());
  const auto facts = refused->hello();
  EXPECT_EQ(facts.status().code(), Code::kUnavailable);
  EXPECT_THAT(facts.status().message(), HasSubstr("16 controllers are connected already"));
  for (Connection& one : all) EXPECT_TRUE(one.hello().ok()) << "nobody had to go for it";
  all.pop_back();
  EXPECT_TRUE(becomes([&] { return connected().has_value(); }));
}

// Somebody may have left them open.
TEST_F(ControlTest, OfSilentControllersTheOldestWithoutAFaultGoes) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection holds = connect();  // the oldest of all
  const std::uint64_t fault = valueOf(holds.arm(rule(Effect::kPostError, qp)));
  std::vector<Connection> idle;
  for (int i = 0; i < 15; ++i) {
    idle.push_back(connect());
    EXPECT_TRUE(idle.back().hello().ok());
  }
  EXPECT_TRUE(idle[0].hello().ok()) << "has been heard since the next one was";
  std::vector<Connection> more;
  for (std::size_t i = 1; i <= 3; ++i) {
    more.push_back(connect());
    EXPECT_TRUE(more.back().hello().ok());
    EXPECT_EQ(idle[i].hello().status().code(), Code::kUnavailable) << i;
  }
  for (std::size_t i = 4; i < idle.size(); ++i) EXPECT_TRUE(idle[i].hello().ok()) << i;
  EXPECT_TRUE(idle[0].hello().ok());
  EXPECT_TRUE(holds.counters(fault).ok());
  EXPECT_EQ(postSend(qp, 1), ENOMEM);
}

TEST_F(ControlTest, AControllerThatGoesWithAnAnswerUnreadIsOnlyGone) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  {
    Connection control = connect();
    const std::uint64_t fault = valueOf(control.arm(rule(Effect::kPostError, qp)));
    EXPECT_TRUE(control.askCounters(fault).ok());
    ::poll(nullptr, 0, 20);  // it answers
  }
  EXPECT_TRUE(becomes([&] { return postSend(qp, 1) == 0; }));
  EXPECT_EQ(valueOf(connect().hello()).armed, 0u);
}

TEST_F(ControlTest, AnAddressThatIsNotGlobalHasNoGid) {
  Device device(0);
  ibv_qp* const qp = device.makeQp(3);
  ibv_qp_attr address{};
  address.ah_attr.dlid = 9;
  address.ah_attr.grh.dgid.raw[0] = 0xfe;
  shimLibrary().modifyQp(qp, &address, IBV_QP_AV);
  EXPECT_EQ(valueOf(connect().list()).at(0),
            (QueuePairFacts{"fake0", qp->qp_num, 3, 9, "", "RC", "RTS"}));
}

TEST_F(ControlTest, AQueuePairThatCannotBeDestroyedStays) {
  Device device(0);
  ibv_qp* const qp = device.makeQp(5);
  fake().failDestroy(EBUSY);
  EXPECT_EQ(shimLibrary().destroyQp(qp), EBUSY);
  EXPECT_EQ(shimLibrary().destroyCq(device.cq), EBUSY);
  fake().failDestroy(0);
  Connection control = connect();
  const auto all = valueOf(control.list());
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].peerNumber, 5u);
  valueOf(control.arm(rule(Effect::kPostError, qp)));
  EXPECT_EQ(postSend(qp, 1), ENOMEM);
}

TEST_F(ControlTest, AProcessWithoutTheShimIsToldApartFromOneThatIsNot) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  // It has the shim mapped, as its parent has, and no control thread.
  auto opened = Connection::open(child);
  EXPECT_EQ(opened.status().code(), Code::kUnavailable);
  EXPECT_THAT(opened.status().message(), HasSubstr("does not answer"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  opened = Connection::open(child);
  EXPECT_EQ(opened.status().code(), Code::kNotFound);
  const pid_t plain = ::fork();
  if (plain == 0) {
    ::execl("/bin/sleep", "sleep", "100", nullptr);
    ::_exit(1);
  }
  EXPECT_TRUE(becomes([&] {
    opened = Connection::open(plain);
    return opened.status().message().find("LD_PRELOAD") != std::string::npos;
  }));
  EXPECT_EQ(opened.status().code(), Code::kUnavailable);
  ::kill(plain, SIGKILL);
  ::waitpid(plain, nullptr, 0);
}

// A child posts on what it inherits without faults, has no listener of its parent's, and gets its
// own when it opens a device.
TEST_F(ControlTest, AForkedChildIsFreeOfFaultsAndGetsItsOwnControl) {
  Device device(0);
  ibv_qp* const qp = device.makeQp();
  Connection control = connect();
  const std::uint64_t fault = valueOf(control.arm(rule(Effect::kPostError, qp)));
  const pid_t child = ::fork();
  if (child == 0) {
    int failures = 0;
    if (postSend(qp, 1) != 0) ++failures;
    Device own(1);
    ibv_qp* const mine = own.makeQp();
    auto inner = Connection::open(::getpid());
    if (!inner.ok()) ::_exit(20);
    const auto armed = inner->arm(rule(Effect::kPostError, mine));
    if (!armed.ok()) ::_exit(21);
    if (postSend(mine, 1) != ENOMEM) failures += 2;
    if (postSend(qp, 1) != 0) failures += 4;
    if (!inner->disarm(*armed).ok()) failures += 8;
    // No exit handler runs here.
    ::unlink(injector::verbs::socketPath(injector::verbs::defaultFolder(::geteuid()), ::getpid(),
                                         injector::verbs::pidNamespaceOf("self"))
                 .c_str());
    ::_exit(failures);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(postSend(qp, 2), ENOMEM) << "the parent's is still armed";
  EXPECT_TRUE(control.counters(fault).ok());
}

TEST_F(ControlTest, ImportedDevicesAreWatchedAndManyContextsCanBe) {
  const auto before = valueOf([] {
    Device device(0);
    return connect().hello();
  }());
  EXPECT_EQ(before.contexts, 1u);
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < 40; ++i) devices.push_back(std::make_unique<Device>(i % 3));
  ibv_context* const imported = shimLibrary().importDevice(0);
  const auto facts = valueOf(connect().hello());
  EXPECT_EQ(facts.contexts, 41u);
  EXPECT_EQ(facts.missedContexts, 0u);
  EXPECT_EQ(imported->ops.post_send, devices[0]->context->ops.post_send);
  shimLibrary().closeDevice(imported);
  devices.clear();
  EXPECT_EQ(valueOf(connect().hello()).contexts, 0u);
}

// Threads that post, poll, make and destroy, while faults come and go.
TEST_F(ControlTest, ThreadsWorkWhileFaultsAreArmedAndDisarmed) {
  std::atomic<bool> stop{false};
  std::atomic<long> posted{0}, refused{0}, completed{0}, lost_errors{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) {
        Device device(t, 64);
        std::vector<ibv_qp*> queue_pairs{device.makeQp(1), device.makeQp(2)};
        ibv_qp_ex* const batch = device.makeExtendedQp();
        for (int round = 0; round < 50; ++round) {
          for (ibv_qp* const qp : queue_pairs) {
            postSend(qp, 1, 100) == 0 ? ++posted : ++refused;
          }
          ibv_wr_start(batch);
          ibv_wr_rdma_write(batch, 0, 0);
          ibv_wr_set_sge(batch, 0, 0, 10);
          ibv_wr_complete(batch) == 0 ? ++posted : ++refused;
          for (const ibv_wc& completion : device.poll()) {
            ++completed;
            if (completion.status != IBV_WC_SUCCESS && completion.status != IBV_WC_WR_FLUSH_ERR &&
                completion.vendor_err != kInjectedVendorError) {
              ++lost_errors;
            }
          }
        }
      }
    });
  }
  Connection control = connectWhenReady();
  const TimePoint begin = now();
  int armed = 0;
  // Where three threads that never wait have all processors, few faults come to be armed in a
  // second.
  for (std::uint64_t seed = 0; now() < begin + 1500ms || (armed <= 10 && now() < begin + 20s);
       ++seed) {
    const auto effect = static_cast<Effect>(seed % 6);
    Rule random = rule(effect);
    random.match.peerNumber = seed % 3 == 0 ? 0 : 1;
    random.trigger.probability = seed % 2 == 0 ? 1 : 0.5;
    random.trigger.seed = seed;
    random.delay = 1ms;
    random.bitsPerSecond = 1'000'000'000;
    const auto fault = control.arm(random);
    if (!fault.ok()) continue;  // just then nobody had a queue pair
    ++armed;
    ::poll(nullptr, 0, 2);
    EXPECT_TRUE(control.counters(*fault).ok());
    EXPECT_TRUE(control.disarm(*fault).ok());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(armed, 10);
  EXPECT_GT(posted, 0);
  EXPECT_GT(refused, 0);
  EXPECT_GT(completed, 0);
  EXPECT_EQ(lost_errors, 0) << "an error that is neither tagged nor genuine";
  EXPECT_TRUE(becomes([&] { return valueOf(control.hello()).queuePairs == 0; }));
}

}  // namespace
}  // namespace faultline::testing
