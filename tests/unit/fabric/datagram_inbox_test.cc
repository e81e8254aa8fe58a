#include "resilient_ccl/fabric/datagram_inbox.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "resilient_ccl/auth/sealed_path.h"
#include "resilient_ccl/channel/wire.h"
#include "tests/support/refused_calls.h"

namespace faultline::fabric {
namespace {

constexpr std::size_t kLongest = channel::kMaxDatagram + sizeof(auth::Seal);

/// Datagrams that wait in a socket.
class Inbox {
 public:
  Inbox() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    out_ = UniqueFd(ends[0]);
    in_ = UniqueFd(ends[1]);
  }
  bool send(const std::string& datagram) const {
    return ::send(out_.get(), datagram.data(), datagram.size(), 0) ==
           static_cast<ssize_t>(datagram.size());
  }
  std::vector<std::string> read() const {
    std::vector<std::string> taken;
    readDatagrams(in_.get(), [&](std::span<const std::byte> datagram) {
      taken.emplace_back(reinterpret_cast<const char*>(datagram.data()), datagram.size());
    });
    return taken;
  }

 private:
  UniqueFd out_, in_;
};

/// Whether datagrams of all lengths come as they were sent, as many as there are, and a longer one
/// so that it is seen.
bool givesWhatWasSent() {
  const Inbox inbox;
  if (!inbox.read().empty()) return false;
  for (int round = 0; round < 20; ++round) {  // more than a batch
    const std::vector<std::string> sent{"one", "", std::string(kLongest, 'x'), "four"};
    for (const std::string& datagram : sent) {
      if (!inbox.send(datagram)) return false;
    }
    if (inbox.read() != sent) return false;
  }
  if (!inbox.send(std::string(2 * kLongest, 'y'))) return false;
  return inbox.read() == std::vector{std::string(kLongest + 1, 'y')};
}

TEST(DatagramInboxTest, GivesEachDatagramAsItWasSent) { EXPECT_TRUE(givesWhatWasSent()); }

// Of containers whose filter does not know the call.
TEST(DatagramInboxTest, DoesWithoutTheCallForMany) {
  for (const int error : {ENOSYS, EPERM, EACCES}) {
    EXPECT_TRUE(test::worksWithout({SYS_recvmmsg}, error, givesWhatWasSent)) << "error " << error;
  }
}

}  // namespace
}  // namespace faultline::fabric
