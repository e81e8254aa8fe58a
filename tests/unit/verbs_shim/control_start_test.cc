// How the control thread starts, in children that have a folder for themselves, and goes on when
// the process lacks what it needs.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>

#include "injector/verbs/message.h"
#include "tests/unit/verbs_shim/control_folder.h"

namespace faultline::testing {
namespace {

/// Called by listen() below, when set, before it does what it is for.
void (*g_before_listen)() = nullptr;

}  // namespace
}  // namespace faultline::testing

// In front of the C library's for the whole program, the shim in it too.
extern "C" int listen(int fd, int backlog) noexcept {
  if (faultline::testing::g_before_listen != nullptr) faultline::testing::g_before_listen();
  static const auto real = reinterpret_cast<int (*)(int, int)>(::dlsym(RTLD_NEXT, "listen"));
  return real(fd, backlog);
}

namespace faultline::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(ControlStartTest, AnotherProcessThatDoesNotAnswerIsNotWaitedFor) {
  const std::string stopped = folder_ + "/1-1.sock";
  const UniqueFd listener = newSocket();
  const sockaddr_un address = addressOf(stopped);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<UniqueFd> queue;
  do {
    queue.push_back(newSocket(SOCK_NONBLOCK));
  } while (connects(queue.back().get(), stopped));
  ASSERT_EQ(errno, EAGAIN);
  EXPECT_EQ(inChild([] {
              const Device device(0);
              return 0;
            }),
            0);
  EXPECT_TRUE(std::filesystem::exists(stopped)) << "it is not stale";
}

TEST_F(ControlStartTest, TheSocketOfAKilledProcessGoes) {
  const std::string stale = folder_ + "/1-1.sock";
  {
    const UniqueFd gone = newSocket();
    const sockaddr_un address = addressOf(stale);
    ASSERT_EQ(::bind(gone.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  EXPECT_EQ(inChild([&] {
              const Device device(0);
              return connects(newSocket().get(), ownPath(folder_)) ? 0 : 1;
            }),
            0);
  EXPECT_FALSE(std::filesystem::exists(stale));
}

// Pipes between a child that is about to listen and the test.
UniqueFd g_tell, g_told;
void tellAndWait() {
  char word = 'x';
  [[maybe_unused]] const ssize_t written = ::write(g_tell.get(), &word, 1);
  [[maybe_unused]] const ssize_t got = ::read(g_told.get(), &word, 1);
}

TEST_F(ControlStartTest, ASocketThatDoesNotListenYetIsNotTakenForStale) {
  int about[2], go_on[2];
  ASSERT_EQ(::pipe2(about, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(go_on, O_CLOEXEC), 0);
  const UniqueFd is_about(about[0]), may_go_on(go_on[1]);
  g_tell.reset(about[1]);
  g_told.reset(go_on[0]);
  const pid_t slow = ::fork();
  if (slow == 0) {
    g_before_listen = tellAndWait;
    const Device device(0);
    ::_exit(connects(newSocket().get(), ownPath(folder_)) ? 0 : 1);
  }
  g_tell.reset();
  g_told.reset();
  char word = 0;
  ASSERT_EQ(::read(is_about.get(), &word, 1), 1);
  EXPECT_EQ(inChild([] {
              const Device device(0);
              return 0;
            }),
            0);
  ASSERT_EQ(::write(may_go_on.get(), &word, 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(slow, &status, 0), slow);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "nobody can connect to it any more";
}

TEST_F(ControlStartTest, AProcessThatGetsNoThreadGoesOnWithoutControl) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd said(ends[0]);
  UniqueFd says(ends[1]);
  enum Failures { kPost = 1, kSignals = 2, kFile = 4, kNoLater = 8 };
  EXPECT_EQ(inChild([&] {
              ::dup2(says.get(), STDERR_FILENO);
              pthread_attr_t attributes;
              ::pthread_getattr_default_np(&attributes);
              std::size_t size = 0;
              ::pthread_attr_getstacksize(&attributes, &size);
              // More than there are addresses.
              ::pthread_attr_setstacksize(&attributes, std::size_t{1} << 47);
              ::pthread_setattr_default_np(&attributes);
              sigset_t before;
              sigset_t after;
              ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
              Device device(0);
              ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
              int failures = postSend(device.makeQp(), 1) == 0 ? 0 : kPost;
              if (::sigismember(&after, SIGUSR1) != ::sigismember(&before, SIGUSR1)) {
                failures |= kSignals;
              }
              if (!std::filesystem::is_empty(folder_)) failures |= kFile;
              ::pthread_attr_setstacksize(&attributes, size);
              ::pthread_setattr_default_np(&attributes);
              const Device later(1);
              if (!connects(newSocket().get(), ownPath(folder_))) failures |= kNoLater;
              return failures;
            }),
            0);
  says.reset();
  EXPECT_THAT(allOf(said), HasSubstr("start the thread that answers controllers"));
}

/// What a child says on stderr that opens two devices and posts, once `before` has happened in it;
/// it is refused, goes on, and leaves no more in `folder` than `before` has.
template <typename Before>
std::string saidBy(Before before, const std::string& folder) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd said(ends[0]);
  UniqueFd says(ends[1]);
  enum Failures { kPost = 1, kFile = 2 };
  const auto files = [&] {
    std::error_code unreadable;  // for want of a descriptor
    const std::filesystem::directory_iterator begin(folder, unreadable);
    return unreadable ? -1 : std::distance(begin, {});
  };
  EXPECT_EQ(inChild([&] {
              ::dup2(says.get(), STDERR_FILENO);
              before();
              const auto there = files();
              Device device(0);
              const Device another(1);
              const int failures = postSend(device.makeQp(), 1) == 0 ? 0 : kPost;
              return failures | (files() == there ? 0 : kFile);
            }),
            0);
  says.reset();
  const std::string all = allOf(said);
  EXPECT_EQ(all.find("no faults can be put"), all.rfind("no faults can be put")) << all;
  return all;
}

void useFolder(const std::string& folder) {
  ::setenv(injector::verbs::kFolderVariable, folder.c_str(), 1);
}

TEST_F(ControlStartTest, AFolderThatWillNotDoIsRefusedWithWhatToDo) {
  const auto refused = [&](const std::string& folder) {
    return saidBy([&] { useFolder(folder); }, folder_);
  };
  EXPECT_THAT(refused("here"),
              HasSubstr("FAULTLINE_VERBS_DIR=here is no absolute path: set it to"));
  EXPECT_THAT(refused(folder_ + "/none/sockets"),
              HasSubstr("make the folder " + folder_ + "/none/sockets"));
  EXPECT_THAT(refused("/dev/null"),
              HasSubstr("/dev/null is no folder that only this user can write to; set "
                        "FAULTLINE_VERBS_DIR to one"));
  EXPECT_THAT(saidBy(
                  [&] {
                    useFolder(folder_ + "/all");
                    ::mkdir((folder_ + "/all").c_str(), 0700);
                    ::chmod((folder_ + "/all").c_str(), 0777);
                  },
                  folder_),
              HasSubstr("is no folder that only this user can write to"));
  const std::string longer = folder_ + "/" + std::string(100, 'x');
  EXPECT_THAT(saidBy(
                  [&] {
                    useFolder(longer);
                    ::mkdir(longer.c_str(), 0700);
                  },
                  folder_),
              HasSubstr("is too long for a socket; set FAULTLINE_VERBS_DIR to a shorter folder"));
}

TEST_F(ControlStartTest, AFolderOfAnotherUserIsRefused) {
  if (::chown(folder_.c_str(), 65'534, 65'534) != 0) {
    GTEST_SKIP() << "cannot give a folder to another user";
  }
  EXPECT_THAT(saidBy([] {}, folder_), HasSubstr("is no folder that only this user can write to"));
}

TEST_F(ControlStartTest, WhatIsInItsPlaceStaysAndIsTold) {
  EXPECT_THAT(saidBy([&] { ::mkdir(ownPath(folder_).c_str(), 0700); }, folder_),
              HasSubstr("listen at " + folder_));
  EXPECT_THAT(saidBy([&] { ::mkdir((ownPath(folder_) + "~").c_str(), 0700); }, folder_),
              HasSubstr("listen at " + folder_));
}

TEST_F(ControlStartTest, WithoutADescriptorForItTheProgramGoesOn) {
  // What the first such call under a sanitizer needs a descriptor for.
  ASSERT_FALSE(Status::fromErrno(EMFILE, "").ok());
  const auto use_up = [] {
    const int first_free = ::dup(STDERR_FILENO);
    ::close(first_free);
    const auto limit = static_cast<rlim_t>(first_free);
    rlimit none{};
    ::getrlimit(RLIMIT_NOFILE, &none);
    none.rlim_cur = limit;
    ::setrlimit(RLIMIT_NOFILE, &none);
  };
  EXPECT_THAT(saidBy(use_up, folder_), HasSubstr("make the control socket"));
}

TEST_F(ControlStartTest, WhatElseIsInTheFolderIsLeftAlone) {
  const std::vector<std::string> files{folder_ + "/notes",
                                       folder_ + "/" + std::string(120, 'x') + ".sock"};
  for (const std::string& file : files) ASSERT_EQ(::close(::creat(file.c_str(), 0600)), 0);
  EXPECT_EQ(inChild([&] {
              const Device device(0);
              return connects(newSocket().get(), ownPath(folder_)) ? 0 : 1;
            }),
            0);
  for (const std::string& file : files) EXPECT_TRUE(std::filesystem::exists(file)) << file;
}

TEST_F(ControlStartTest, AnEmptyFolderMeansTheUsualOne) {
  EXPECT_EQ(inChild([&] {
              useFolder("");
              const Device device(0);
              const std::string path = ownPath(injector::verbs::defaultFolder(::geteuid()));
              const bool there = connects(newSocket().get(), path);
              ::unlink(path.c_str());  // no exit handler runs here
              return there ? 0 : 1;
            }),
            0);
}

Duration processorTime() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

TEST_F(ControlStartTest, AProcessWithoutDescriptorsDoesNotSpinAndLetsControllersInLater) {
  enum Failures { kConnect = 1, kSpins = 2, kOthers = 4, kNoAnswer = 8, kSpinsWithNone = 16 };
  EXPECT_EQ(inChild([&] {
              Device device(0);
              device.makeQp();
              const std::string hello = injector::verbs::Message("hello").serialize();
              const auto answers = [&](const UniqueFd& fd) {
                std::array<char, 4096> answer{};
                pollfd readable{fd.get(), POLLIN, 0};
                return ::send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL) > 0 &&
                       ::poll(&readable, 1, 5000) == 1 &&
                       ::recv(fd.get(), answer.data(), answer.size(), 0) > 0;
              };
              const UniqueFd before = newSocket();
              const UniqueFd waiting = newSocket();
              if (!connects(before.get(), ownPath(folder_)) || !answers(before)) return 32;
              const auto spins = [] {
                const TimePoint begin = now();
                const Duration used = processorTime();
                ::poll(nullptr, 0, 500);
                return (processorTime() - used) * 20 > now() - begin;
              };
              rlimit limit{};
              ::getrlimit(RLIMIT_NOFILE, &limit);
              const int first_free = ::dup(before.get());
              ::close(first_free);
              const rlimit no_more{static_cast<rlim_t>(first_free), limit.rlim_max};
              ::setrlimit(RLIMIT_NOFILE, &no_more);
              int failures = connects(waiting.get(), ownPath(folder_)) ? 0 : kConnect;
              if (spins()) failures |= kSpins;
              if (!answers(before)) failures |= kOthers;
              const rlimit none{0, limit.rlim_max};  // poll() fails
              ::setrlimit(RLIMIT_NOFILE, &none);
              if (spins()) failures |= kSpinsWithNone;
              ::setrlimit(RLIMIT_NOFILE, &limit);
              if (!answers(waiting)) failures |= kNoAnswer;
              return failures;
            }),
            0);
}

std::set<std::string> threads() {
  std::set<std::string> numbers;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    numbers.insert(thread.path().filename());
  }
  return numbers;
}

// As daemons and launchers do. What gets those numbers next must be left alone.
TEST_F(ControlStartTest, ItsThreadEndsWithItsDescriptorsAndTheProgramGoesOn) {
  enum Failures { kNoThread = 1, kThreadStays = 2, kProgramFails = 4 };
  EXPECT_EQ(inChild([&] {
              const std::size_t before = threads().size();
              Device device(0);
              ibv_qp* const qp = device.makeQp();
              if (threads().size() != before + 1) return kNoThread;
              ::closefrom(STDERR_FILENO + 1);
              constexpr int kFarAway = 500;  // and not one of its numbers
              const UniqueFd visitor(::fcntl(newSocket().get(), F_DUPFD, kFarAway));
              // Where it waits for somebody, it still does; elsewhere it has ended already.
              (void)connects(visitor.get(), ownPath(folder_));
              if (!becomes([&] { return threads().size() == before; })) return kThreadStays;
              postSend(qp, 1);
              return idsOf(device.poll()) == std::vector<std::uint64_t>{1} ? Failures{}
                                                                           : kProgramFails;
            }),
            0);
}

TEST_F(ControlStartTest, ItsThreadRunsBesideThoseOfARealTimeProgram) {
  enum Failures { kNotAllowed = 77, kNoThread = 1, kRealTime = 2, kPinned = 4 };
  const int ended = inChild([&] {
    cpu_set_t all, one;
    ::sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    CPU_SET(::sched_getcpu(), &one);
    const sched_param lowest{.sched_priority = 1};
    const auto before = threads();
    if (::sched_setaffinity(0, sizeof one, &one) != 0 ||
        ::sched_setscheduler(0, SCHED_FIFO, &lowest) != 0) {
      return int{kNotAllowed};
    }
    const Device device(0);
    for (const std::string& thread : threads()) {
      if (before.contains(thread)) continue;
      const pid_t number = std::stoi(thread);
      if (!becomes([&] { return ::sched_getscheduler(number) == SCHED_OTHER; }))
        return int{kRealTime};
      const bool free = static_cast<bool>(becomes([&] {
        cpu_set_t its;
        return ::sched_getaffinity(number, sizeof its, &its) == 0 &&
               CPU_COUNT(&its) >= CPU_COUNT(&all);
      }));
      return free ? 0 : int{kPinned};
    }
    return int{kNoThread};
  });
  if (ended == kNotAllowed) GTEST_SKIP() << "this process may not become a real-time one";
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace faultline::testing
