#include "resilient_ccl/fabric/port_sight.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <optional>
#include <string>

#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "tests/support/netns_shell.h"
#include "tests/support/poll_until.h"

namespace faultline::fabric {
namespace {

/// A port, `near`, and the other end of its cable.
class PortSightTest : public test::NetnsTest {
 protected:
  static constexpr int kNear = 100;
  static constexpr Duration kLong = 20s;

  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(here_, netlink::newNamespace());
    ASSERT_OK_AND_ASSIGN(there_, netlink::newNamespace());
    ASSERT_OK_AND_ASSIGN(netlink::Socket near, netlink::Socket::open(here_.get()));
    ASSERT_OK_AND_ASSIGN(netlink::Socket far, netlink::Socket::open(there_.get()));
    near_.emplace(std::move(near));
    far_.emplace(std::move(far));
  }
  /// Of an end with the index of the other one the kernel tells up to a second late.
  void connect(int far) {
    farIndex_ = far;
    ASSERT_OK(netlink::createVeth(*near_, {.name = "near", .ifindex = kNear}, there_.get(),
                                  {.name = "far", .ifindex = far}));
    ASSERT_OK(netlink::setUp(*near_, kNear, true));
  }
  void setCarrier(bool on) { ASSERT_OK(netlink::setUp(*far_, farIndex_, on)); }

  /// The port of a namespace, as seen from inside.
  static PortSight look(const UniqueFd& where, const std::string& device) {
    const auto inside = netlink::ScopedNamespace::enter(where.get());
    EXPECT_TRUE(inside.ok()) << inside.status().message();
    return PortSight(device);
  }
  /// Whether the flags of the port say that it works.
  static bool running(const UniqueFd& where, const std::string& device) {
    const auto inside = netlink::ScopedNamespace::enter(where.get());
    EXPECT_TRUE(inside.ok()) << inside.status().message();
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    device.copy(request.ifr_name, IFNAMSIZ - 1);
    EXPECT_EQ(ioctl(socket.get(), SIOCGIFFLAGS, &request), 0);
    return (request.ifr_flags & IFF_RUNNING) != 0;
  }
  /// The carrier goes, and a look at the port shows it while its flags do not say so yet.
  ///
  /// The kernel waits with what it tells up to a second after it has told of another port of that
  /// kind; not every time.
  bool seesALossBeforeItIsTold(const PortSight& sight, const UniqueFd& where,
                               const std::string& device) {
    return test::pollUntil(kLong, [&] {
      setCarrier(true);
      EXPECT_TRUE(test::pollUntil(kLong, [&] { return running(where, device); }));
      EXPECT_FALSE(sight.lost());
      setCarrier(false);
      EXPECT_TRUE(test::pollUntil(kLong, [&] { return sight.lost(); }));
      return running(where, device) || HasFailure();
    });
  }

  UniqueFd here_, there_;
  std::optional<netlink::Socket> near_, far_;
  int farIndex_ = 0;
};

TEST_F(PortSightTest, ACarrierIsSeenToGoAndToComeBack) {
  connect(kNear + 1);
  PortSight sight = look(here_, "near");
  EXPECT_TRUE(sight.seesCarrier());
  EXPECT_TRUE(test::pollUntil(kLong, [&] { return sight.lost(); })) << "the other end is off";
  for (int turn = 0; turn < 3; ++turn) {
    setCarrier(true);
    EXPECT_TRUE(test::pollUntil(kLong, [&] { return running(here_, "near"); }));
    sight.works();
    EXPECT_FALSE(sight.lost());
    setCarrier(false);
    EXPECT_TRUE(sight.lost()) << "at once";
  }
}

TEST_F(PortSightTest, APortThatIsSwitchedOffOrTakenAwayIsLost) {
  connect(kNear + 1);
  setCarrier(true);
  const PortSight sight = look(here_, "near");
  EXPECT_TRUE(test::pollUntil(kLong, [&] { return !sight.lost(); }));
  ASSERT_OK(netlink::setUp(*near_, kNear, false));
  EXPECT_TRUE(sight.lost());
  ASSERT_OK(netlink::setUp(*near_, kNear, true));
  EXPECT_TRUE(test::pollUntil(kLong, [&] { return !sight.lost(); }));
  ASSERT_OK(netlink::deleteNetDevice(*near_, kNear));
  EXPECT_TRUE(sight.lost());
}

TEST_F(PortSightTest, ALossIsSeenBeforeTheKernelTellsOfIt) {
  connect(kNear);
  setCarrier(true);
  ASSERT_TRUE(test::pollUntil(kLong, [&] { return running(here_, "near"); }));
  const PortSight sight = look(here_, "near");
  EXPECT_TRUE(seesALossBeforeItIsTold(sight, here_, "near"));
}

// As that of a NIC whose driver has it off when it registers the port: the kernel counts a return
// more than losses.
TEST_F(PortSightTest, ACarrierThatWasOffWhenItsPortWasMadeIsMissedAsWell) {
  connect(kNear + 1);
  const std::string port = "ip link add link near name port index 100 netns " +
                           test::placeOfNamespace(there_.get()) + " type macvlan";
  ASSERT_NO_FATAL_FAILURE(test::runInNamespace(here_.get(), port));
  ASSERT_OK(netlink::setUp(*far_, kNear, true));
  setCarrier(true);
  ASSERT_TRUE(test::pollUntil(kLong, [&] { return running(there_, "port"); }));
  const PortSight sight = look(there_, "port");
  ASSERT_TRUE(sight.seesCarrier());
  EXPECT_TRUE(seesALossBeforeItIsTold(sight, there_, "port"));
}

}  // namespace
}  // namespace faultline::fabric
