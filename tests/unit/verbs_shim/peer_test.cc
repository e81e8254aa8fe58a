#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <string_view>

#include "injector/verbs/message.h"
#include "tests/unit/verbs_shim/control_folder.h"

namespace faultline::testing {
namespace {

/// Whom the shim of another process lets in.
class PeerTest : public ControlStartTest {
 protected:
  static constexpr uid_t kRoot = 0;
  static constexpr uid_t kSomebody = 65'534;
  static constexpr uid_t kSomebodyElse = 65'533;

  void SetUp() override {
    if (::geteuid() != kRoot) GTEST_SKIP() << "not root: cannot become somebody else";
    if (inChild([] { return become(kSomebody) ? 0 : 1; }) != 0) {
      GTEST_SKIP() << "root of a user namespace that has no other users";
    }
    ControlStartTest::SetUp();
  }
  void TearDown() override {
    if (!folder_.empty()) ControlStartTest::TearDown();
  }

  static bool become(uid_t user) {
    return user == ::geteuid() ||
           (::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0);
  }

  /// A process of `owner` with an open device, until the end of this.
  class Host {
   public:
    Host(const std::string& folder, uid_t owner) {
      // Everybody can reach the socket, so that nothing but the check keeps them out.
      ::chmod(folder.c_str(), 0755);
      EXPECT_EQ(::chown(folder.c_str(), owner, owner), 0);
      int ready[2], over[2];
      EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
      EXPECT_EQ(::pipe2(over, O_CLOEXEC), 0);
      const UniqueFd is_ready(ready[0]);
      UniqueFd becomes_ready(ready[1]), ends(over[0]);
      over_.reset(over[1]);
      pid_ = ::fork();
      if (pid_ == 0) {
        over_.reset();
        if (!become(owner)) ::_exit(1);
        const Device device(0);
        ::chmod(ownPath(folder).c_str(), 0777);
        char word = 'x';
        [[maybe_unused]] const ssize_t written = ::write(becomes_ready.get(), &word, 1);
        [[maybe_unused]] const ssize_t got = ::read(ends.get(), &word, 1);
        ::_exit(0);
      }
      becomes_ready.reset();
      char word = 0;
      EXPECT_EQ(::read(is_ready.get(), &word, 1), 1);
      path_ = injector::verbs::socketPath(folder, pid_, injector::verbs::pidNamespaceOf("self"));
    }
    ~Host() {
      over_.reset();
      EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
    }

    /// Whether it obeys this user. One that it does not is told so.
    bool obeys(uid_t user) const {
      enum Answers { kYes, kNo, kNone };
      const int answer = inChild([&] {
        const UniqueFd fd = newSocket();
        if (!become(user) || !connects(fd.get(), path_)) return int{kNone};
        const std::string hello = injector::verbs::Message("hello").serialize();
        ::send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
        std::array<char, 4096> buffer{};
        pollfd readable{fd.get(), POLLIN, 0};
        if (::poll(&readable, 1, 5000) != 1) return int{kNone};
        ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size() - 1, 0);
        // Closed before it has read the hello; what it said comes after that.
        if (got < 0) got = ::recv(fd.get(), buffer.data(), buffer.size() - 1, 0);
        const std::string_view text(buffer.data(), std::max<ssize_t>(got, 0));
        if (text.find("code=permission_denied") != text.npos) return int{kNo};
        return int{text.find(" ok\n") != text.npos ? kYes : kNone};
      });
      EXPECT_NE(answer, kNone) << "user " << user << " got no answer";
      return answer == kYes;
    }

   private:
    UniqueFd over_;
    pid_t pid_ = 0;
    std::string path_;
  };
};

TEST_F(PeerTest, RootsProcessObeysRootAlone) {
  const Host host(folder_, kRoot);
  EXPECT_TRUE(host.obeys(kRoot));
  EXPECT_FALSE(host.obeys(kSomebody));
}

TEST_F(PeerTest, AnotherUsersProcessObeysThisUserAndRoot) {
  const Host host(folder_, kSomebody);
  EXPECT_TRUE(host.obeys(kRoot));
  EXPECT_TRUE(host.obeys(kSomebody));
  EXPECT_FALSE(host.obeys(kSomebodyElse));
}

}  // namespace
}  // namespace faultline::testing
