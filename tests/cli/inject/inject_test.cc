#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "injector/verbs/connection.h"
#include "tests/support/poll_until.h"
#include "tests/support/run_program.h"
#include "tests/support/usual_signals.h"

namespace faultline {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Ran;
using testing::runFaultline;
using testing::TemporaryFolder;
using Json = nlohmann::json;

/// A program that posts and polls over fake queue pairs until it is told to end.
class Victim {
 public:
  enum class Folder { kAbsolute, kRelative };

  explicit Victim(bool with_shim = true, Folder kind = Folder::kAbsolute, bool fails = false) {
    const std::filesystem::path folder =
        kind == Folder::kAbsolute ? folder_.path() : std::filesystem::relative(folder_.path());
    int input[2];
    int output[2];
    if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(input[0], STDIN_FILENO);
      ::dup2(output[1], STDOUT_FILENO);
      ::setenv("FAULTLINE_VERBS_LIB", FAULTLINE_FAKE_IBVERBS, 1);
      ::setenv("FAULTLINE_VERBS_DIR", folder.c_str(), 1);
      if (with_shim) ::setenv("LD_PRELOAD", FAULTLINE_VERBS_SHIM, 1);
      ::execl(FAULTLINE_VERBS_VICTIM, FAULTLINE_VERBS_VICTIM, "2", fails ? "fails" : nullptr,
              nullptr);
      ::_exit(127);
    }
    ::close(input[0]);
    ::close(output[1]);
    stop_ = input[1];
    output_ = ::fdopen(output[0], "r");
    EXPECT_EQ(line(), "ready\n");
  }
  ~Victim() {
    if (stop_ >= 0) end();
    std::fclose(output_);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  /// Ends it, and returns what it got.
  Json end() {
    ::close(std::exchange(stop_, -1));
    const Json told = Json::parse(line());
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << "its socket must be gone";
    return told;
  }

  /// Waits for it to end by an error.
  void fails() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
    ::close(std::exchange(stop_, -1));
  }
  pid_t pid() const { return pid_; }

  /// How many faults it has; -1 when it does not say.
  int armed() const {
    auto connection = injector::verbs::Connection::open(pid_);
    if (!connection.ok()) return -1;
    const auto facts = connection->hello();
    return facts.ok() ? static_cast<int>(facts->armed) : -1;
  }
  bool becomesArmed(int count) const {
    return test::pollUntil(kPatience, [&] { return armed() == count; });
  }
  void signal(int number) const { ::kill(pid_, number); }
  /// All of its threads stand still when it returns.
  void stop() const {
    signal(SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
    ASSERT_TRUE(WIFSTOPPED(status));
  }

  std::string target(const std::string& more = "") const {
    return "pid=" + std::to_string(pid_) + more;
  }

 private:
  static constexpr Duration kPatience = 20s;

  std::string line() {
    char text[512] = "";
    return std::fgets(text, sizeof(text), output_) == nullptr ? "" : text;
  }

  TemporaryFolder folder_;
  pid_t pid_ = 0;
  int stop_ = -1;
  std::FILE* output_ = nullptr;
};

/// `faultline inject` beside the test, which has armed its fault.
class Injecting {
 public:
  Injecting(const Victim& victim, const std::vector<std::string>& fault) {
    std::vector<std::string> words{"faultline", "inject", "--target", victim.target()};
    words.insert(words.end(), fault.begin(), fault.end());
    pid_ = ::fork();
    if (pid_ == 0) {
      testing::takeSignalsAsUsual();
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      if (::freopen(file("out").c_str(), "w", stdout) != nullptr &&
          ::freopen(file("err").c_str(), "w", stderr) != nullptr) {
        ::execv((std::string(FAULTLINE_BINARY_DIR) + "/faultline").c_str(), argv.data());
      }
      ::_exit(127);
    }
    EXPECT_TRUE(victim.becomesArmed(1));
  }
  ~Injecting() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    wait();
  }
  Injecting(const Injecting&) = delete;
  Injecting& operator=(const Injecting&) = delete;

  void signal(int number) const { ::kill(pid_, number); }

  Ran wait() {
    int status = 0;
    EXPECT_EQ(::waitpid(std::exchange(pid_, 0), &status, 0) > 0, true);
    const auto text = [&](const char* name) {
      std::ifstream stream(file(name));
      return std::string(std::istreambuf_iterator<char>(stream), {});
    };
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text("out"),
            text("err")};
  }

 private:
  std::string file(const char* name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
  pid_t pid_ = 0;
};

Json list(const Victim& victim) {
  const Ran ran = runFaultline({"inject", "--list", "--target", victim.target(), "--json"});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  return Json::parse(ran.out);
}

TEST(InjectTest, ListsTheQueuePairsOfAnUnmodifiedProgram) {
  const Victim victim;
  const Json told = list(victim);
  ASSERT_EQ(told["queue_pairs"].size(), 2u);
  EXPECT_EQ(told["queue_pairs"][0]["device"], "fake0");
  EXPECT_EQ(told["queue_pairs"][0]["state"], "RTS");
  EXPECT_EQ(told["queue_pairs"][1]["peer_qpn"], 1001);
  EXPECT_EQ(told["queue_pairs"][1]["shim"], true);
  EXPECT_EQ(told["no_faults"], Json());
  const Ran text = runFaultline({"inject", "--list", "--target", victim.target()});
  EXPECT_THAT(text.out, HasSubstr("peer_qpn"));
  EXPECT_THAT(text.out, HasSubstr("fake0"));
  EXPECT_THAT(text.out, HasSubstr("as told by the verbs shim"));
  EXPECT_THAT(text.out, ContainsRegex("fake0 +[0-9]+ +RC +RTS +yes +1000 "));
}

TEST(InjectTest, AQueuePairGoesToErrorAndOnlyThatOne) {
  Victim victim;
  const int qpn = list(victim)["queue_pairs"][0]["qpn"];
  const Ran ran = runFaultline({"inject", "qp_error", "--target",
                                victim.target(",dev=fake0,qpn=" + std::to_string(qpn)), "--json"});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const Json told = Json::parse(ran.out);
  EXPECT_EQ(told["evidence"]["ok"], true);
  EXPECT_EQ(told["parameters"]["qpn"], std::to_string(qpn));
  EXPECT_EQ(told["reverted"], true);
  const Json after = list(victim)["queue_pairs"];
  EXPECT_EQ(after[0]["state"], "ERR");
  const Ran again =
      runFaultline({"inject", "qp_error", "--target",
                    victim.target(",dev=fake0,qpn=" + std::to_string(qpn)), "--for", "300ms"});
  EXPECT_EQ(again.exit, 2) << again.out << again.err;
  EXPECT_THAT(again.err, HasSubstr("in error or reset"));
  EXPECT_EQ(after[1]["state"], "RTS");
  const Json got = victim.end();
  EXPECT_GT(got["statuses"]["5"], 0) << "flushed";
  EXPECT_EQ(got["refused"], 0);
}

TEST(InjectTest, CompletionsBecomeErrorsAsOftenAsTheBudgetSays) {
  Victim victim;
  const Ran ran =
      runFaultline({"inject", "completion_rewrite", "--target", victim.target(), "--for", "300ms",
                    "--param", "status=rnr_retry_exc_err", "--param", "budget=3"});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("it happened"));
  EXPECT_THAT(ran.err, HasSubstr("; unproven: on adapters"));
  const Json got = victim.end();
  EXPECT_EQ(got["statuses"]["13"], 3);
  EXPECT_EQ(got["statuses"].size(), 2u) << "the others are successes";
}

TEST(InjectTest, PostsFailWhileItLastsAndNotAfterwards) {
  Victim victim;
  const Ran ran = runFaultline(
      {"inject", "post_error", "--target", victim.target(",peer_qpn=1001"), "--for", "200ms"});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const Json got = victim.end();
  EXPECT_GT(got["refused"], 0);
  EXPECT_EQ(got["statuses"].size(), 1u);
}

constexpr double kRequestedMbit = 8;
/// What `inject qp_rate` says that it has achieved of kRequestedMbit with all queue pairs, in
/// Mbit/s.
double achievedMbit(const Victim& victim) {
  const Ran ran = runFaultline({"inject", "qp_rate", "--target", victim.target(",dev=fake0"),
                                "--for", "1s", "--param", "rate=8Mbit", "--json"});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const auto observed = Json::parse(ran.out)["evidence"]["observed"].get<std::string>();
  EXPECT_THAT(observed, HasSubstr("Mbit/s for 8Mbit requested"));
  return std::strtod(observed.c_str(), nullptr);
}

// The victim has 65 ms of the link under way: it is slower only where it does not run for longer.
TEST(InjectTest, ARateIsReportedAsItWasAchieved) {
  const Victim victim;
  const double achieved = achievedMbit(victim);
  EXPECT_GE(achieved, kRequestedMbit / 2);
  EXPECT_LE(achieved, kRequestedMbit * 1.1);
}

// The victim goes on to post to it, and what is flushed takes nothing of the other's link.
TEST(InjectTest, ARateIsAchievedBesideAQueuePairInError) {
  Victim victim;
  const int qpn = list(victim)["queue_pairs"][0]["qpn"];
  const Ran ran =
      runFaultline({"inject", "qp_error", "--target",
                    victim.target(",dev=fake0,qpn=" + std::to_string(qpn)), "--for", "50ms"});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  const double achieved = achievedMbit(victim);
  EXPECT_GE(achieved, kRequestedMbit / 2);
  EXPECT_LE(achieved, kRequestedMbit * 1.1);
  const Json got = victim.end();
  EXPECT_GT(got["statuses"]["5"].get<long>(), 100) << "work was flushed meanwhile";
}

TEST(InjectTest, DelayAndLossLeaveTheirMarks) {
  const Victim victim;
  Ran ran = runFaultline({"inject", "qp_delay", "--target", victim.target(), "--for", "200ms",
                          "--param", "delay=5ms"});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  ran = runFaultline({"inject", "completion_loss", "--target", victim.target(), "--for", "100ms",
                      "--param", "budget=2"});
  EXPECT_EQ(ran.exit, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("2 of "));
}

TEST(InjectTest, WithoutEvidenceTheExitCodeSaysSo) {
  const Victim victim;
  const Ran ran = runFaultline({"inject", "post_error", "--target", victim.target(), "--for",
                                "50ms", "--param", "side=recv", "--json"});
  EXPECT_EQ(ran.exit, 5) << "the program posts no receives";
  EXPECT_EQ(Json::parse(ran.out)["evidence"]["ok"], false);
}

TEST(InjectTest, AProgramWithoutTheShimIsRefusedWithWhatToDo) {
  const Victim victim(/*with_shim=*/false);
  const Ran ran =
      runFaultline({"inject", "qp_error", "--target", victim.target(), "--for", "50ms"});
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("LD_PRELOAD"));
  EXPECT_THAT(ran.err, HasSubstr("NCCL_IBVERBS_LIB"));
  const Ran listed = runFaultline({"inject", "--list", "--target", victim.target()});
  EXPECT_EQ(listed.exit, 3);
  EXPECT_THAT(listed.err, HasSubstr("LD_PRELOAD"));
  EXPECT_THAT(listed.err, HasSubstr("the kernel (RDMA netlink): ")) << "what it said, too";
}

TEST(InjectTest, ARelativeFolderOfTheSocketIsRefused) {
  const Victim victim(/*with_shim=*/true, Victim::Folder::kRelative);
  const Ran ran =
      runFaultline({"inject", "qp_error", "--target", victim.target(), "--for", "50ms"});
  EXPECT_EQ(ran.exit, 3);
  EXPECT_THAT(ran.err, HasSubstr("no absolute path"));
}

TEST(InjectTest, MistakesAreTold) {
  const Victim victim;
  const auto wrong = [&](const std::vector<std::string>& arguments, const std::string& message) {
    std::vector<std::string> all{"inject"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ran ran = runFaultline(all);
    EXPECT_EQ(ran.exit, 2) << message << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(message));
    EXPECT_EQ(ran.out, "");
  };
  const std::string target = victim.target();
  wrong({}, "which fault? Possible are port_down, ");
  wrong({"post_error", "--target", target}, "--for");
  wrong({"qp_error", "--target", target, "--for", "5"}, "no unit");
  wrong({"qp_error", "--target", target, "--for", "0s"}, "must last");
  wrong({"qp_eror", "--target", target, "--for", "1s"}, "did you mean 'qp_error'");
  wrong({"path_cut", "--target", target, "--for", "1s"}, "not by hand");
  wrong({"port_down", "--target", target, "--for", "1s"},
        "port_down has no 'pid'; it has if, pci, mac");
  wrong({"qp_error", "--target", "dev=fake0", "--for", "1s"}, "which process");
  wrong({"qp_error", "--target", "pid=x", "--for", "1s"}, "no process number");
  wrong({"qp_error", "--target", target + ",host=a", "--for", "1s"}, "no 'host'");
  wrong({"qp_error", "--target", target + ",pid=1", "--for", "1s"}, "given twice");
  wrong({"qp_error", "--target", target + ",dev=fake9", "--for", "1s"}, "fake9");
  wrong({"qp_delay", "--target", target, "--for", "1s"}, "needs the parameter 'delay'");
  wrong({"qp_error", "--target", target, "--for", "1s", "--param", "dgid=nonsense"}, "no GID");
  wrong({"qp_error", "--target", "pid=999999999", "--for", "1s"}, "no process");
  wrong({"qp_error", "--list", "--target", target}, "--list takes only");
  // Of RDMA devices.
  wrong({"rdma_port_dwn", "--target", "dev=rxe0", "--for", "1s"}, "did you mean 'rdma_port_down'");
  wrong({"rdma_port_down", "--target", "port=1", "--for", "1s"},
        "which RDMA device? Like dev=rxe0");
  wrong({"rdma_port_down", "--target", "dev=rxe0,port=x", "--for", "1s"}, "'x' is no number of a");
  wrong({"rdma_silent_drop", "--target", target, "--for", "1s"},
        "rdma_silent_drop has no 'pid'; it has dev, port, other_end");
  wrong({"rdma_silent_drop", "--target", "dev=rxe0", "--for", "1s", "--param", "direction=up"},
        "direction");
  wrong({"rdma_throttle", "--target", "dev=rxe0", "--for", "1s"}, "needs the parameter 'rate'");
  wrong({"rdma_link_delete", "--target", "dev=rxe0"}, "--for");
}

TEST(InjectTest, InterruptedItTakesTheFaultBack) {
  const Victim victim;
  Injecting injecting(victim, {"post_error", "--for", "60s"});
  injecting.signal(SIGINT);
  const Ran ran = injecting.wait();
  EXPECT_EQ(ran.exit, 130);
  EXPECT_THAT(ran.out, HasSubstr("interrupted, and taken back"));
  EXPECT_THAT(ran.out, Not(HasSubstr("INVALID")));
  EXPECT_EQ(victim.armed(), 0);
  const Ran idle = runFaultline({"inject", "completion_loss", "--target", victim.target(), "--for",
                                 "50ms", "--param", "budget=1"});
  EXPECT_EQ(idle.exit, 0) << "it posts again" << idle.out << idle.err;
}

// What it lasts is over at once; the evidence would be there after ten seconds.
TEST(InjectTest, InterruptedWhileItWaitsForEvidenceItTakesTheFaultBack) {
  const Victim victim;
  Injecting injecting(victim, {"qp_delay", "--for", "1ms", "--param", "delay=10s", "--json"});
  injecting.signal(SIGINT);
  const Ran ran = injecting.wait();
  EXPECT_EQ(ran.exit, 130) << ran.out << ran.err;
  const Json told = Json::parse(ran.out);
  EXPECT_EQ(told["interrupted"], true);
  EXPECT_EQ(told["evidence"], Json());
  EXPECT_LT(told["lasted_ms"], 9000);
  EXPECT_EQ(victim.armed(), 0);
}

// Nobody takes it back: the program does so itself.
TEST(InjectTest, KilledItLeavesNothingArmed) {
  const Victim victim;
  Injecting injecting(victim, {"post_error", "--for", "60s"});
  injecting.signal(SIGKILL);
  EXPECT_EQ(injecting.wait().exit, 128 + SIGKILL);
  EXPECT_TRUE(victim.becomesArmed(0));
}

TEST(InjectTest, AFaultWhoseLeaseEndedHasNotLasted) {
  const Victim victim;
  Injecting injecting(victim, {"post_error", "--for", "60s"});
  injecting.signal(SIGSTOP);
  EXPECT_TRUE(victim.becomesArmed(0));
  injecting.signal(SIGCONT);
  const Ran ran = injecting.wait();
  EXPECT_EQ(ran.exit, 3) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, ContainsRegex("lease in process [0-9]+ ended after about [0-9]+ ms"));
}

TEST(InjectTest, AProgramThatEndsEndsTheFault) {
  Victim victim;
  Injecting injecting(victim, {"post_error", "--for", "60s", "--json"});
  victim.end();
  const Ran ran = injecting.wait();
  const Json told = Json::parse(ran.out);
  EXPECT_EQ(told["target_ended"], true);
  EXPECT_LT(told["lasted_ms"], 50'000);
  EXPECT_THAT(told["evidence"]["observed"].get<std::string>(),
              ContainsRegex("process [0-9]+ ended after [0-9]+ ms"));
  EXPECT_EQ(ran.exit, told["evidence"]["ok"] == true ? 0 : 5) << ran.err;
}

TEST(InjectTest, AProgramThatIsStoppedIsLetGo) {
  const Victim victim;
  Injecting injecting(victim, {"post_error", "--for", "60s"});
  victim.stop();
  const Ran ran = injecting.wait();
  EXPECT_EQ(ran.exit, 3) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("has not answered for 5s"));
  victim.signal(SIGCONT);
  EXPECT_TRUE(victim.becomesArmed(0));
}

TEST(InjectTest, AnInterruptDoesNotWaitForAProgramThatIsStopped) {
  const Victim victim;
  Injecting injecting(victim, {"post_error", "--for", "60s"});
  victim.stop();
  const TimePoint begin = now();
  injecting.signal(SIGINT);
  const Ran ran = injecting.wait();
  EXPECT_LT(now() - begin, injector::verbs::Connection::kPatience / 2);
  EXPECT_EQ(ran.exit, 130) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("has not answered for 500ms"));
  victim.signal(SIGCONT);
  EXPECT_TRUE(victim.becomesArmed(0));
}

/// As perftest does: nobody has asked what it has run into before it is gone.
TEST(InjectTest, AProgramThatFailsAtOnceHasToldWhatItRanInto) {
  namespace verbs = injector::verbs;
  for (const verbs::Effect effect : {verbs::Effect::kCompletionRewrite, verbs::Effect::kQpError}) {
    Victim victim(/*with_shim=*/true, Victim::Folder::kAbsolute, /*fails=*/true);
    auto connection = verbs::Connection::open(victim.pid());
    ASSERT_TRUE(connection.ok()) << connection.status().message();
    verbs::Rule rule{.effect = effect};
    if (effect == verbs::Effect::kCompletionRewrite) rule.status = 10;
    rule.trigger.budget = 1;
    rule.lease = 10s;
    const auto fault = connection->arm(rule);
    ASSERT_TRUE(fault.ok()) << fault.status().message();
    victim.fails();
    ASSERT_TRUE(connection->askCounters(*fault).ok());
    EXPECT_EQ(connection->takeCounters(5s).status().code(), Code::kUnavailable);
    const auto last = connection->last(*fault);
    ASSERT_TRUE(last.has_value());
    EXPECT_EQ(last->happened, 1u);
    EXPECT_FALSE(connection->last(*fault + 1).has_value());
  }
}

}  // namespace
}  // namespace faultline
