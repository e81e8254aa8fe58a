#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitizers.h"
#include "base/unique_fd.h"
#include "tests/support/net_driver.h"
#include "tests/support/poll_until.h"
#include "tests/support/run_program.h"

// The plugin's life inside somebody else's program: loaded, begun, ended, unloaded and loaded
// again; what it leaves of threads and descriptors; children of fork; several communicators at
// once.

namespace faultline::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr Duration kPatience = 20s;

std::set<std::string> entriesOf(const char* folder) {
  std::set<std::string> names;
  for (const auto& one : fs::directory_iterator(folder)) names.insert(one.path().filename());
  return names;
}
std::set<std::string> threads() { return entriesOf("/proc/self/task"); }
std::set<std::string> descriptors() { return entriesOf("/proc/self/fd"); }

std::vector<std::string> newIn(const std::set<std::string>& after,
                               const std::set<std::string>& before) {
  std::vector<std::string> names;
  std::ranges::set_difference(after, before, std::back_inserter(names));
  return names;
}

/// The word behind "key:" in a file of /proc.
std::string wordOf(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string word; in >> word;) {
    if (word != key + ":") continue;
    in >> word;
    return word;
  }
  return "";
}

bool await(NetDriver& net, void* request) {
  int done = 0;
  return pollUntil(kPatience,
                   [&] {
                     return net.test(request, &done, nullptr) != NetResult::kSuccess || done != 0;
                   }) &&
         done != 0;
}

/// One message from one end to the other.
bool exchange(NetDriver& net, const Ends& ends, std::size_t size = 1000) {
  std::vector<std::byte> from(size, std::byte{9}), to(size);
  void* const data = to.data();
  constexpr int kOnlyTag = 1;
  void *got = nullptr, *sent = nullptr;
  if (net.irecv(ends.receive, std::span(&data, 1), std::span(&size, 1), std::span(&kOnlyTag, 1),
                &got) != NetResult::kSuccess ||
      net.isend(ends.send, from.data(), size, kOnlyTag, &sent) != NetResult::kSuccess) {
    return false;
  }
  return await(net, sent) && await(net, got) && from == to;
}

struct Use {
  int version;
  int ioThreads;
  friend void PrintTo(const Use& use, std::ostream* out) {
    *out << "version " << use.version << ", " << use.ioThreads << " I/O threads";
  }
};

class LifecycleTest : public ::testing::TestWithParam<Use> {
 protected:
  void SetUp() override {
    // A thread that has been joined may be listed for a moment longer.
    ASSERT_TRUE(version() == 10 || pollUntil(kPatience, [] { return !inUse(); }))
        << "version 10, which has no end, was in use in this process: it comes last";
    setenv("FAULTLINE_NICS", "lo", 1);
    setenv("FAULTLINE_MANAGEMENT", "lo", 1);
    setenv("FAULTLINE_IO_THREADS", std::to_string(GetParam().ioThreads).c_str(), 1);
  }
  static int version() { return GetParam().version; }
  static bool inUse() {
    return std::ranges::any_of(threads(), [](const std::string& thread) {
      return wordOf("/proc/self/task/" + thread + "/status", "Name") == "faultline";
    });
  }

  /// A communicator from its beginning to its end, with one connection.
  static void liveOnce(const std::function<void(NetDriver&, const Ends&)>& meanwhile = {}) {
    NetDriver net(FAULTLINE_NET_PLUGIN, version());
    ASSERT_EQ(net.error(), "");
    ASSERT_EQ(net.init(), NetResult::kSuccess);
    const Ends ends = connectHere(net);
    ASSERT_NE(ends.receive, nullptr);
    EXPECT_TRUE(exchange(net, ends));
    if (meanwhile) meanwhile(net, ends);
    EXPECT_EQ(net.closeSend(ends.send), NetResult::kSuccess);
    EXPECT_EQ(net.closeRecv(ends.receive), NetResult::kSuccess);
    EXPECT_EQ(net.finalize(), NetResult::kSuccess);
  }
};

/// Of versions that are told of the end. Its cases are the first: see LifecycleTest::SetUp.
class EndTest : public LifecycleTest {};

TEST_P(EndTest, CountersAreOfTheProcessAndNotOfItsLastCommunicatorAlone) {
  const fs::path file = fs::path(::testing::TempDir()) /
                        ("faultline_lifecycle_" + std::to_string(getpid()) + ".json");
  setenv("FAULTLINE_COUNTERS", file.c_str(), 1);
  const auto sent = [&] {
    std::ifstream in(file);
    const auto told = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
    std::int64_t sum = 0;
    for (const auto& peer : told["peers"]) sum += peer["bytes_sent"].get<std::int64_t>();
    return sum;
  };
  liveOnce();
  const std::int64_t first = sent();
  EXPECT_GE(first, 1000);
  liveOnce();
  EXPECT_EQ(sent(), first + 1000);
  unsetenv("FAULTLINE_COUNTERS");
  fs::remove(file);
}

// As at the end of a process, while NCCL's threads still run.
TEST_P(EndTest, ThreadsThatGoOnCallingWhileItEndsGetErrors) {
  constexpr int kLives = 5;
  std::atomic<bool> stop = false;
  std::atomic<int> worked = 0, failed = 0;
  NetDriver net(FAULTLINE_NET_PLUGIN, version());
  ASSERT_EQ(net.error(), "");
  std::thread user([&] {
    NetDriver its(FAULTLINE_NET_PLUGIN, version());
    while (!stop) {
      std::array<std::byte, nccl::kNetHandleBytes> handle{};
      void *listener = nullptr, *connection = nullptr;
      if (its.listen(0, handle.data(), &listener) != NetResult::kSuccess) {
        ++failed;
        continue;
      }
      (void)its.devices();
      // Not each time: a call that nobody asks about keeps its socket until it is answered.
      if (worked % 50 == 0) (void)its.connect(0, handle.data(), &connection);
      EXPECT_EQ(its.closeSend(connection), NetResult::kSuccess);
      (void)its.accept(listener, &connection);
      EXPECT_EQ(its.closeRecv(connection), NetResult::kSuccess);
      EXPECT_EQ(its.closeListen(listener), NetResult::kSuccess);
      ++worked;
    }
  });
  for (int life = 0; life < kLives; ++life) {
    const int workedBefore = worked, failedBefore = failed;
    ASSERT_EQ(net.init(), NetResult::kSuccess);
    EXPECT_TRUE(pollUntil(kPatience, [&] { return worked > workedBefore + 10; }));
    EXPECT_EQ(net.finalize(), NetResult::kSuccess);
    EXPECT_TRUE(pollUntil(kPatience, [&] { return failed > failedBefore; }));
  }
  stop = true;
  user.join();
}

TEST_P(LifecycleTest, NcclUnloadsItAndLoadsItAgain) {
  for (int life = 0; life < 3; ++life) {
    liveOnce();
    // It was closed as often as it was opened, and its code stays for who may still return to it.
    void* const still = dlopen(FAULTLINE_NET_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(still, nullptr);
    dlclose(still);
  }
}

TEST_P(LifecycleTest, ThreadsAndDescriptorsAreThoseThatAreSaidAndEndWithTheLastCommunicator) {
  liveOnce();  // what libraries begin once and keep
  if (version() > 10) {
    const std::set<std::string> threadsBefore = threads(), descriptorsBefore = descriptors();
    liveOnce([&](NetDriver&, const Ends&) {
      std::vector<std::string> names;
      for (const std::string& thread : newIn(threads(), threadsBefore)) {
        const std::string status = "/proc/self/task/" + thread + "/status";
        names.push_back(wordOf(status, "Name"));
        const std::uint64_t blocked = std::stoull(wordOf(status, "SigBlk"), nullptr, 16);
        for (const int signal : {SIGTERM, SIGINT, SIGCHLD, SIGUSR1, SIGPIPE}) {
          EXPECT_NE(blocked >> (signal - 1) & 1, 0U) << names.back() << " takes signal " << signal;
        }
      }
      std::ranges::sort(names);
      std::vector<std::string> said{"faultline"};
      said.resize(1 + GetParam().ioThreads, "faultline-io");
      EXPECT_EQ(names, said);
      const std::vector<std::string> opened = newIn(descriptors(), descriptorsBefore);
      EXPECT_GE(opened.size(), 10U);
      for (const std::string& one : opened) {
        const int flags = fcntl(std::stoi(one), F_GETFD);
        // The one that lists the descriptors is gone.
        EXPECT_TRUE(flags < 0 || (flags & FD_CLOEXEC) != 0) << one;
      }
    });
    EXPECT_TRUE(pollUntil(kPatience, [&] { return newIn(threads(), threadsBefore).empty(); }));
    EXPECT_EQ(newIn(descriptors(), descriptorsBefore).size(), 0U);
  }
  const std::string count = std::to_string(GetParam().ioThreads);
  EXPECT_THAT(NetDriver::informations(),
              Contains(AllOf(HasSubstr(count + " I/O threads"), HasSubstr("FAULTLINE_GIVE_UP=10s"),
                             HasSubstr("FAULTLINE_IO_THREADS=" + count))));
}

TEST_P(LifecycleTest, CommunicatorsOfSeveralThreadsBeginAndEndAtOnce) {
  constexpr int kThreads = 4, kLives = 4;
  std::vector<std::thread> users;
  for (int i = 0; i < kThreads; ++i) {
    users.emplace_back([] {
      for (int life = 0; life < kLives; ++life) liveOnce();
    });
  }
  for (std::thread& user : users) user.join();
}

// As the workers of PyTorch's data loaders: they hold copies of all sockets.
TEST_P(LifecycleTest, AChildThatLivesOnHindersNeitherTheEndNorTheNextBeginning) {
  std::array<int, 2> pipe;
  ASSERT_EQ(pipe2(pipe.data(), O_CLOEXEC), 0);
  const UniqueFd reading(pipe[0]);
  UniqueFd writing(pipe[1]);
  setenv("FAULTLINE_GIVE_UP", "1min", 1);
  pid_t child = -1;
  const TimePoint begin = now();
  liveOnce([&](NetDriver& net, const Ends& ends) {
    child = fork();
    if (child == 0) {
      close(pipe[1]);
      char byte;
      _exit(read(pipe[0], &byte, 1) == 0 ? 0 : 1);  // when the parent says so, or is gone
    }
    EXPECT_TRUE(exchange(net, ends, 300'000));
  });
  liveOnce();
  EXPECT_LT(now() - begin, 30s) << "FAULTLINE_GIVE_UP was waited for";
  unsetenv("FAULTLINE_GIVE_UP");
  writing.reset();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

#if !defined(FAULTLINE_ADDRESS_SANITIZER) && !defined(FAULTLINE_THREAD_SANITIZER)  // they want more
TEST_P(LifecycleTest, WithoutMemoryACallIsAnErrorAndTheProgramGoesOn) {
  liveOnce([](NetDriver& net, const Ends& ends) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
    rlimit none = before;
    none.rlim_cur = 1;  // what there is stays
    ASSERT_EQ(setrlimit(RLIMIT_AS, &none), 0);
    NetResult result = NetResult::kSuccess;
    constexpr int kMost = 10'000'000;
    for (int i = 0; i < kMost && result == NetResult::kSuccess; ++i) {
      std::array<std::byte, nccl::kNetHandleBytes> handle;
      void* listener = nullptr;
      result = net.listen(0, handle.data(), &listener);
    }
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
    EXPECT_EQ(result, NetResult::kSystemError);
    EXPECT_TRUE(exchange(net, ends));
  });
}
#endif

// Also where only the end of the process is told, and NCCL's log may be gone.
TEST_P(LifecycleTest, CountersThatFindTheDiskFullAreNotLostWithoutAWord) {
  setenv("FAULTLINE_COUNTERS", "/dev/full", 1);
  const testing::TemporaryFolder folder;
  const auto talk = [&](const char* side) {
    return testing::runProgram(FAULTLINE_NET_PEER,
                               {FAULTLINE_NET_PLUGIN, std::to_string(version()),
                                folder.path().string(), side, "--seconds", "0.1"});
  };
  auto other = std::async(std::launch::async, [&] { return talk("1"); });
  const testing::Ran one = talk("0");
  unsetenv("FAULTLINE_COUNTERS");
  for (const testing::Ran& it : {one, other.get()}) {
    EXPECT_EQ(it.exit, 0) << it.out;
    EXPECT_THAT(it.out + it.err, AllOf(HasSubstr("FAULTLINE_COUNTERS: write /dev/full"),
                                       HasSubstr("No space left on device")));
  }
}

// Like a rank whose Python raises in the middle of a collective, next to one that lives and has not
// posted its receives. NCCL's proxy may go on calling meanwhile.
TEST_P(LifecycleTest, AProgramThatEndsWithSendsUnderWayEndsAtOnce) {
  constexpr Duration kGiveUp = 20s;
  setenv("FAULTLINE_GIVE_UP", "20s", 1);
  for (const char* const how : {"1", "2"}) {
    const testing::TemporaryFolder folder;
    const auto start = [&](const char* side, const char* seconds, const char* key,
                           const char* value) {
      const pid_t child = fork();
      if (child != 0) return child;
      const std::string number = std::to_string(version());
      execl(FAULTLINE_NET_PEER, "net_peer", FAULTLINE_NET_PLUGIN, number.c_str(),
            folder.path().c_str(), side, "--seconds", seconds, key, value, nullptr);
      _exit(127);
    };
    const pid_t peer = start("1", "0.1", "--late", "60");
    const pid_t leaving = start("0", "60", "--leave", how);
    // Its peer waits for nothing from it and receives nothing more: of what it has sent much is
    // still under way.
    EXPECT_TRUE(
        pollUntil(kPatience, [&] { return fs::exists(fs::path(folder.path()) / "sent1"); }));
    const TimePoint begin = now();
    const std::ofstream stop(fs::path(folder.path()) / "stop");
    int status = 0;
    EXPECT_EQ(waitpid(leaving, &status, 0), leaving);
    EXPECT_LT(now() - begin, kGiveUp / 2);
    EXPECT_EQ(status, 0) << "leave " << how;
    EXPECT_EQ(waitpid(peer, &status, WNOHANG), 0) << "the peer was to live";
    kill(peer, SIGKILL);
    waitpid(peer, &status, 0);
  }
  unsetenv("FAULTLINE_GIVE_UP");
}

TEST_P(LifecycleTest, AChildThatIsForkedOffInTheMiddleOfABeginningOrAnEndDoesNotHang) {
  liveOnce();
  NetDriver net(FAULTLINE_NET_PLUGIN, version());
  ASSERT_EQ(net.error(), "");
  std::atomic<bool> stop = false;
  std::thread user([&] {
    while (!stop) {
      NetDriver its(FAULTLINE_NET_PLUGIN, version());
      EXPECT_EQ(its.init(), NetResult::kSuccess);
      EXPECT_EQ(its.finalize(), NetResult::kSuccess);
    }
  });
  constexpr int kChildren = 10;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // the end of one that hangs
      _exit(net.finalize() == NetResult::kSuccess && net.init() == NetResult::kInternalError ? 0
                                                                                             : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "child " << i;
    if (status != 0) break;
  }
  stop = true;
  user.join();
}

std::string nameOf(const ::testing::TestParamInfo<Use>& use) {
  return "v" + std::to_string(use.param.version) + "With" + std::to_string(use.param.ioThreads) +
         "IoThreads";
}

const auto kWithAnEnd = ::testing::Values(Use{11, 0}, Use{11, 3}, Use{12, 3});
INSTANTIATE_TEST_SUITE_P(Lives, EndTest, kWithAnEnd, nameOf);
INSTANTIATE_TEST_SUITE_P(Lives, LifecycleTest, kWithAnEnd, nameOf);
// Cases of one prefix are all run before those of the next.
INSTANTIATE_TEST_SUITE_P(OneLife, LifecycleTest, ::testing::Values(Use{10, 3}), nameOf);

}  // namespace
}  // namespace faultline::test
