// The controller's end, against shims that are not ours: what answers is in somebody's program.
#include "injector/verbs/connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "injector/verbs/address.h"
#include "tests/support/fake_shim.h"
#include "tests/support/poll_until.h"

namespace faultline::injector::verbs {
namespace {

using faultline::test::pollUntil;
using faultline::testing::FakeShim;
using ::testing::HasSubstr;
using ::testing::Not;

Message countersReply(std::uint64_t happened) {
  Message reply("ok");
  Counters counters;
  counters.happened = happened;
  addCounters(reply, counters);
  return reply;
}

TEST(VerbsConnectionTest, AListWithoutEndIsNotReadForEver) {
  const FakeShim shim([](const Message&) {
    Message page("ok");
    page.add("total", UINT64_MAX);
    for (int i = 0; i < 100; ++i) page.add("qp", writeFacts({"a", 1, 2, 3, "::1", "RC", "RTS"}));
    return page;
  });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  const auto list = connection->list();
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.status().code(), Code::kIo);
  EXPECT_THAT(list.status().message(), HasSubstr("had no end"));
}

TEST(VerbsConnectionTest, WhoIsNotLetInIsToldSoThoughItHasAskedAlready) {
  const FakeShim shim(errorMessage(errorf(Code::kPermissionDenied, "not you")));
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  ASSERT_TRUE(connection->askCounters(1).ok());
  ::poll(nullptr, 0, 20);  // it closes
  const auto counters = connection->takeCounters(5s);
  EXPECT_EQ(counters.status().code(), Code::kPermissionDenied) << counters.status().message();
}

TEST(VerbsConnectionTest, AnAnswerThatNobodyTookIsNotTakenForTheNext) {
  const FakeShim shim(
      [](const Message& request) { return countersReply(request.verb() == "disarm" ? 7 : 3); });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  ASSERT_TRUE(connection->askCounters(1).ok());
  const auto counters = connection->disarm(1);
  ASSERT_TRUE(counters.ok()) << counters.status().message();
  EXPECT_EQ(counters->happened, 7u);
}

TEST(VerbsConnectionTest, NobodyWaitsForCountersThatDoNotCome) {
  const FakeShim shim([](const Message&) { return std::optional<Message>(); });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  ASSERT_TRUE(connection->askCounters(1).ok());
  const auto counters = connection->takeCounters(1ms);
  ASSERT_TRUE(counters.ok()) << counters.status().message();
  EXPECT_FALSE(counters->has_value());
}

TEST(VerbsConnectionTest, AnAnswerIsWaitedForOnlyAsLongAsSomebodyDoes) {
  const FakeShim shim([](const Message&) { return std::optional<Message>(); });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  int asked = 0;
  connection->giveUpWhen([&asked] { return ++asked > 2; });
  const TimePoint begin = now();
  EXPECT_EQ(connection->hello().status().code(), Code::kAborted);
  EXPECT_EQ(connection->arm({}).status().code(), Code::kAborted);
  EXPECT_LT(now() - begin, Connection::kPatience / 2);
  const TimePoint end = now();
  const Status disarmed = connection->disarm(1).status();
  EXPECT_EQ(disarmed.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(disarmed.message(), HasSubstr("has not answered for 500ms"));
  EXPECT_GE(now() - end, Connection::kLastPatience) << "that is worth a moment";
  EXPECT_LT(now() - end, Connection::kPatience / 2);
}

TEST(VerbsConnectionTest, AnAnswerThatIsNoneIsAnError) {
  const FakeShim shim([](const Message& request) {
    return Message(request.verb() == "hello" ? "hello" : "ok");  // and the rest lacks its fields
  });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  const auto hello = connection->hello();
  EXPECT_EQ(hello.status().code(), Code::kInternal);
  EXPECT_THAT(hello.status().message(), HasSubstr("to hello: it answered 'hello'"));
  EXPECT_EQ(connection->list().status().code(), Code::kInvalidArgument);
  EXPECT_EQ(connection->counters(1).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(connection->disarm(1).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(connection->arm({.effect = Effect::kQpError, .lease = 1s}).status().code(),
            Code::kInvalidArgument);
  ASSERT_TRUE(connection->askCounters(1).ok());
  EXPECT_EQ(connection->takeCounters(5s).status().code(), Code::kInvalidArgument);
}

TEST(VerbsConnectionTest, AListThatStopsEarlyIsWhatThereIs) {
  const FakeShim shim([](const Message& request) {
    Message page("ok");
    page.add("total", 5);
    if (request.find("from") == "0") page.add("qp", writeFacts({"a", 1, 2, 3, "", "RC", "RTS"}));
    return page;
  });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  const auto list = connection->list();
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_EQ(list->size(), 1u);
}

TEST(VerbsConnectionTest, TheLastWordOfAProgramIsKeptWhenItHasEnded) {
  Message last{std::string(kLastWord)};
  last.add("fault", 3);
  Counters counters;
  counters.happened = 4;
  addCounters(last, counters);
  const FakeShim shim(last);
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  EXPECT_FALSE(connection->last(3));
  const auto ended = connection->counters(3);
  EXPECT_EQ(ended.status().code(), Code::kUnavailable);
  EXPECT_THAT(ended.status().message(), HasSubstr("the process has ended"));
  EXPECT_EQ(connection->last(3), counters);
  EXPECT_FALSE(connection->last(4));
  EXPECT_EQ(connection->counters(3).status().code(), Code::kUnavailable) << "and again";
}

// A timer of the program's own, for one.
TEST(VerbsConnectionTest, SignalsDoNotEndTheWaiting) {
  const FakeShim shim([](const Message&) {
    ::poll(nullptr, 0, 100);
    return countersReply(5);
  });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  static std::atomic<int> signals{0};
  struct sigaction noted {};
  struct sigaction before {};
  noted.sa_handler = [](int) { ++signals; };
  ASSERT_EQ(::sigaction(SIGALRM, &noted, &before), 0);
  const itimerval often{{0, 2000}, {0, 2000}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  const auto counters = connection->counters(1);
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  ASSERT_TRUE(counters.ok()) << counters.status().message();
  EXPECT_EQ(counters->happened, 5u);
  EXPECT_GT(signals, 0);
}

/// What listens where the shim of a process would be, and reads nothing.
class SilentSocket {
 public:
  explicit SilentSocket(pid_t pid)
      : path_(socketPath(defaultFolder(::geteuid()), pid, pidNamespaceOf("self"))),
        listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    ::mkdir(defaultFolder(::geteuid()).c_str(), S_IRWXU);
    ::unlink(path_.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
  }
  ~SilentSocket() { ::unlink(path_.c_str()); }

 private:
  std::string path_;
  UniqueFd listener_;
};

TEST(VerbsConnectionTest, AProgramThatIsStoppedIsNotWaitedForForEver) {
  const SilentSocket stopped(::getpid());
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  const auto hello = connection->hello();
  EXPECT_EQ(hello.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(hello.status().message(), HasSubstr("the program may have been stopped"));
  // Until there is no room for more questions.
  Status asked;
  while (asked.ok()) asked = connection->askCounters(1);
  EXPECT_EQ(asked.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(asked.message(), HasSubstr("to counters"));
}

/// A process that has no shim.
class Child {
 public:
  explicit Child(const std::vector<std::string>& environment = {})
      : pid_(::fork()), hasEnvironment_(!environment.empty()) {
    if (pid_ != 0) return;
    std::vector<char*> variables;
    for (const std::string& text : environment)
      variables.push_back(const_cast<char*>(text.c_str()));
    variables.push_back(nullptr);
    const char* const arguments[] = {"sleep", "100", nullptr};
    ::execve("/bin/sleep", const_cast<char**>(arguments), variables.data());
    ::_exit(127);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Why it cannot be controlled, once it is what it is to be.
  Status refusal() const {
    EXPECT_TRUE(pollUntil(10s, [&] {
      std::error_code error;
      const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid_), error);
      if (error || program == std::filesystem::read_symlink("/proc/self/exe")) return false;
      // execve() gives it its program before its environment.
      return !hasEnvironment_ || std::ifstream(fmt::format("/proc/{}/environ", pid_)).peek() != EOF;
    }));
    return Connection::open(pid_).status();
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
  bool hasEnvironment_;
};

TEST(VerbsConnectionTest, AProcessIsLookedForInTheFolderThatItWasStartedWith) {
  const std::string other = std::string(kFolderVariable) + "X=/tmp";
  const std::string folder = std::string(kFolderVariable) + "=";
  const Status relative = Child({other, folder + "here"}).refusal();
  EXPECT_EQ(relative.code(), Code::kUnavailable);
  EXPECT_THAT(relative.message(), HasSubstr("FAULTLINE_VERBS_DIR=here, which is no absolute path"));
  // Neither a folder that is not there nor one that is empty has a shim.
  for (const char* const absolute : {"/none/at/all", "/proc/self"}) {
    const Status none = Child({"FAULTLINE_VERBS", folder + absolute}).refusal();
    EXPECT_EQ(none.code(), Code::kUnavailable);
    EXPECT_THAT(none.message(), HasSubstr("has no verbs shim: start it with LD_PRELOAD"));
  }
}

TEST(VerbsConnectionTest, WhoAnswersMustBeTheProcessThatIsMeant) {
  const Child child;
  const SilentSocket ours(child.pid());
  const Status refused = child.refusal();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr(fmt::format("at the socket of process {} process {} "
                                                       "answers",
                                                       child.pid(), ::getpid())));
}

TEST(VerbsConnectionTest, AnotherUsersProcessIsToldApart) {
  constexpr uid_t kSomebody = 65'534;
  if (::geteuid() != 0) GTEST_SKIP() << "not root: cannot become somebody else";
  const SilentSocket roots(::getpid());
  const pid_t root = ::getpid();
  enum Answers { kRefused, kElse, kNobody };
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setresuid(kSomebody, kSomebody, kSomebody) != 0) ::_exit(kNobody);
    const Status status = Connection::open(root).status();
    const bool says = status.message().find("is another user's") != std::string::npos;
    ::_exit(status.code() == Code::kPermissionDenied && says ? kRefused : kElse);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNobody) GTEST_SKIP() << "there are no other users here";
  EXPECT_EQ(WEXITSTATUS(status), kRefused);
}

/// A process that has been forked off this one, and waits.
class Forked {
 public:
  explicit Forked(const std::function<bool()>& become = [] { return true; }) {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      const char done = become() ? 'y' : 'n';
      if (::write(ready[1], &done, 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    ::close(ready[1]);
    char done = 'n';
    could_ = ::read(ready[0], &done, 1) == 1 && done == 'y';
    ::close(ready[0]);
  }
  ~Forked() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;
  pid_t pid() const { return pid_; }
  /// Whether it is what it was to become.
  bool could() const { return could_; }

 private:
  pid_t pid_ = 0;
  bool could_ = false;
};

/// What is said to somebody who is made by `become` in a process of its own; nothing when he cannot
/// be made.
std::optional<std::string> refusalOf(pid_t pid, const std::function<bool()>& become) {
  int told[2];
  if (::pipe2(told, O_CLOEXEC) != 0) std::abort();
  const pid_t caller = ::fork();
  if (caller == 0) {
    if (!become()) ::_exit(1);
    const Status status = Connection::open(pid).status();
    const std::string text = fmt::format("{}", status.toString());
    ::_exit(::write(told[1], text.data(), text.size()) > 0 ? 0 : 1);
  }
  ::close(told[1]);
  std::array<char, 4096> text{};
  const ssize_t size = ::read(told[0], text.data(), text.size());
  ::close(told[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(caller, &status, 0), caller);
  if (size <= 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(size));
}

bool becomeSomebody() {
  constexpr uid_t kSomebody = 65'534;
  return ::geteuid() != 0 || (::setresgid(kSomebody, kSomebody, kSomebody) == 0 &&
                              ::setresuid(kSomebody, kSomebody, kSomebody) == 0);
}

TEST(VerbsConnectionTest, AProcessOfTheSameUserThatIsNotDumpableIsNotTakenForAnothers) {
  const Forked closed([] { return becomeSomebody() && ::prctl(PR_SET_DUMPABLE, 0) == 0; });
  if (!closed.could()) GTEST_SKIP() << "there are no other users here";
  const auto told = refusalOf(closed.pid(), becomeSomebody);
  ASSERT_TRUE(told.has_value());
  EXPECT_THAT(*told, HasSubstr("permission_denied"));
  EXPECT_THAT(*told, HasSubstr("is not dumpable, since"));
  EXPECT_THAT(*told, Not(HasSubstr("another user's")));
}

TEST(VerbsConnectionTest, ARootWithFewerCapabilitiesIsToldSo) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root: has no capabilities to give up";
  const auto giveUpAll = [] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
    return ::syscall(SYS_capset, &header, none) == 0;
  };
  const Forked roots;
  auto told = refusalOf(roots.pid(), giveUpAll);
  ASSERT_TRUE(told.has_value());
  EXPECT_THAT(*told, HasSubstr("has capabilities that this one lacks"));
  EXPECT_THAT(*told, Not(HasSubstr("another user's")));
  const Forked somebodys(becomeSomebody);
  if (!somebodys.could()) GTEST_SKIP() << "there are no other users here";
  told = refusalOf(somebodys.pid(), giveUpAll);
  ASSERT_TRUE(told.has_value());
  EXPECT_THAT(*told, HasSubstr("of user 65534, and root may look into it only with"));
}

/// A mapping of a file of the shim's name, which is how its processes are known.
class Mapped {
 public:
  Mapped() {
    std::filesystem::create_directory(folder_);
    std::ofstream(path()) << "not the shim";
    const UniqueFd file(::open(path().c_str(), O_RDONLY | O_CLOEXEC));
    at_ = ::mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE, file.get(), 0);
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~Mapped() {
    ::munmap(at_, kSize);
    std::filesystem::remove_all(folder_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

 private:
  static constexpr std::size_t kSize = 4096;
  std::filesystem::path path() const { return folder_ / "libfaultline-verbs.so"; }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("faultline-mapped-{}", ::getpid());
  void* at_ = nullptr;
};

TEST(VerbsConnectionTest, AChildOfAProgramWithADeviceIsToldAndItsParentNamed) {
  const Mapped shim;
  const Forked child;
  const Status status = Connection::open(child.pid()).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("has not opened an RDMA device (yet)"));
  EXPECT_THAT(status.message(), HasSubstr("what fork() has made"));
  EXPECT_THAT(status.message(),
              HasSubstr(fmt::format("target the parent, process {},", ::getpid())));
}

TEST(VerbsConnectionTest, AProcessThatIsNotThereHasNoNamespace) {
  EXPECT_EQ(pidNamespaceOf("0"), 0u);
  EXPECT_NE(pidNamespaceOf("self"), 0u);
  EXPECT_EQ(Connection::open(0).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace faultline::injector::verbs
