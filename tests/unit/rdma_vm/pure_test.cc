#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "harness/site/rdma_vm/cpio_archive.h"
#include "harness/site/rdma_vm/frame_switch.h"
#include "harness/site/rdma_vm/guest_setup.h"
#include "harness/site/rdma_vm/machine_room.h"
#include "harness/site/rdma_vm/module_order.h"
#include "harness/site/rdma_vm/qemu_command.h"
#include "harness/site/rdma_vm/qmp.h"
#include "harness/site/rdma_vm/vm_plan.h"

namespace faultline::rdma_vm {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(VmSpec, RefusesWhatCannotBe) {
  EXPECT_TRUE(VmSpec{}.check().ok());
  const auto refused = [](auto change) {
    VmSpec spec;
    change(spec);
    return spec.check().code() == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](VmSpec& spec) { spec.hosts = 0; }));
  EXPECT_TRUE(refused([](VmSpec& spec) { spec.hosts = VmSpec::kMost.nodes + 1; }));
  EXPECT_TRUE(refused([](VmSpec& spec) { spec.rails = 0; }));
  EXPECT_TRUE(refused([](VmSpec& spec) { spec.rails = VmSpec::kMost.rails + 1; }));
  EXPECT_TRUE(refused([](VmSpec& spec) { spec.memoryMiB = 100; }));
  EXPECT_TRUE(refused([](VmSpec& spec) { spec.mtu = 100; }));
  EXPECT_TRUE(refused([](VmSpec& spec) { spec.mtu = 10'000; }));
  EXPECT_TRUE(refused([](VmSpec& spec) { spec.sharedFolder = "here"; }));
}

TEST(VmPlan, AddressesTellNicsApart) {
  std::set<std::string> macs, addresses;
  for (int host = 0; host < VmSpec::kMost.nodes; ++host) {
    for (int nic = 0; nic <= VmSpec::kMost.rails; ++nic) {
      EXPECT_EQ(hostOf(macOf(host, nic)), host);
      EXPECT_TRUE(macs.insert(inWords(macOf(host, nic))).second);
      EXPECT_TRUE(addresses.insert(nicAddress(host, nic)).second);
    }
  }
  EXPECT_EQ(inWords(macOf(1, 2)), "52:54:00:02:00:01");
  EXPECT_EQ(hostOf({0x02, 0, 0, 0, 0, 1}), -1);
  EXPECT_EQ(nicName(0), "mgmt");
  EXPECT_EQ(nicName(1), "rail0");
  EXPECT_EQ(nicAddress(1, 1), "10.1.0.2");
}

constexpr std::string_view kDependencies =
    "kernel/a.ko:\n"
    "kernel/fs/b.ko: kernel/a.ko\n"
    "kernel/net/rdma-x.ko: kernel/fs/b.ko kernel/a.ko\n"
    "kernel/c.ko: kernel/a.ko\n";

TEST(ModuleOrder, PutsWhatIsNeededFirstAndEachOnce) {
  constexpr std::array<std::string_view, 2> kWanted{"rdma_x", "c"};
  const auto order = moduleOrder(kDependencies, kWanted);
  ASSERT_TRUE(order.ok());
  EXPECT_THAT(*order,
              ElementsAre("kernel/a.ko", "kernel/fs/b.ko", "kernel/net/rdma-x.ko", "kernel/c.ko"));
}

TEST(ModuleOrder, NamesWhatIsMissing) {
  constexpr std::array<std::string_view, 2> kWanted{"c", "rdma_rxe"};
  const auto order = moduleOrder(kDependencies, kWanted);
  EXPECT_EQ(order.status().code(), Code::kNotFound);
  EXPECT_THAT(order.status().message(), HasSubstr("rdma_rxe"));
}

/// A reader of the format, from its description and not from our writer.
struct Entry {
  std::string name, contents;
  unsigned mode = 0;
};
std::vector<Entry> readCpio(const std::string& bytes) {
  constexpr std::size_t kHeader = 110;
  std::vector<Entry> entries;
  for (std::size_t at = 0; at + kHeader <= bytes.size();) {
    const auto field = [&](std::size_t index) {
      return std::stoul(bytes.substr(at + 6 + 8 * index, 8), nullptr, 16);
    };
    EXPECT_EQ(bytes.substr(at, 6), "070701");
    Entry entry;
    entry.mode = static_cast<unsigned>(field(1));
    const std::size_t size = field(6), name_size = field(11);
    entry.name = bytes.substr(at + kHeader, name_size - 1);
    EXPECT_EQ(bytes[at + kHeader + name_size - 1], '\0');
    const std::size_t data = (at + kHeader + name_size + 3) / 4 * 4;
    entry.contents = bytes.substr(data, size);
    at = (data + size + 3) / 4 * 4;
    if (entry.name == "TRAILER!!!") return entries;
    entries.push_back(std::move(entry));
  }
  ADD_FAILURE() << "no trailer";
  return entries;
}

TEST(CpioArchive, IsReadBack) {
  CpioArchive archive;
  archive.addFolder("dev");
  archive.addFile("init",
                  std::string("\x7f"
                              "ELF\0x",
                              6),
                  true);
  archive.addFile("list", "abc");
  archive.addFile("empty", "");
  const std::vector<Entry> entries = readCpio(std::move(archive).finish());
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].name, "dev");
  EXPECT_EQ(entries[0].mode, 0040755U);
  EXPECT_EQ(entries[1].contents, std::string("\x7f"
                                             "ELF\0x",
                                             6));
  EXPECT_EQ(entries[1].mode, 0100755U);
  EXPECT_EQ(entries[2].contents, "abc");
  EXPECT_EQ(entries[2].mode, 0100644U);
  EXPECT_EQ(entries[3].contents, "");
}

TEST(QemuCommand, HasANicForEachCableAndNothingOnTheNetwork) {
  VmSpec spec;
  spec.memoryMiB = 300;
  const QemuFds fds = guestFds(spec.nics());
  const std::vector<std::string> command = qemuCommand(spec, 1, "/k/vmlinuz", fds);
  EXPECT_THAT(command, Contains("300"));
  EXPECT_THAT(command, Contains("/k/vmlinuz"));
  EXPECT_THAT(command, Contains("dgram,id=nic2,local.type=fd,local.str=7"));
  EXPECT_THAT(command, Contains(HasSubstr("netdev=nic2,mac=52:54:00:02:00:01")));
  EXPECT_THAT(command, Contains("socket,id=agent,fd=8"));
  EXPECT_THAT(command, Contains("socket,id=qmp,fd=9"));
  EXPECT_THAT(command, Contains("/proc/self/fd/10"));
  EXPECT_THAT(command, Contains(HasSubstr("path=/,security_model=none,readonly=on")));
  EXPECT_THAT(command, Not(Contains(HasSubstr("id=shared"))));
  EXPECT_THAT(command, Not(Contains(HasSubstr("127.0.0.1"))));
}

TEST(QemuCommand, SharesOneFolderWhoseNameMayHaveCommas) {
  VmSpec spec;
  spec.sharedFolder = "/a,b";
  const auto command = qemuCommand(spec, 0, "/k", guestFds(spec.nics()));
  EXPECT_THAT(command, Contains(HasSubstr("id=shared,path=/a,,b,security_model=none")));
}

TEST(RoomFds, NoTwoAreTheSame) {
  std::set<int> fds;
  constexpr int kHosts = 3;
  for (int host = 0; host < kHosts; ++host) {
    for (const int fd : {RoomFds::agent(host), RoomFds::qmp(host), RoomFds::console(host)}) {
      EXPECT_TRUE(fds.insert(fd).second);
    }
  }
  EXPECT_TRUE(fds.insert(RoomFds::initramfs(kHosts)).second);
  EXPECT_TRUE(fds.insert(RoomFds::ports(kHosts)).second);
  EXPECT_EQ(*fds.begin(), launch::kFirstInheritedFd);
  EXPECT_EQ(*fds.rbegin(), launch::kFirstInheritedFd + static_cast<int>(fds.size()) - 1)
      << "they are inherited in a row";
}

TEST(Qmp, ALateAnswerIsNotTakenForThatToTheNextCommand) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  QmpClient client{UniqueFd(ends[0])};
  const UniqueFd qemu(ends[1]);
  const Status aborted = client.setLink("nic1", false, 10s, [] { return true; });
  EXPECT_EQ(aborted.code(), Code::kAborted);
  const std::string_view both = "{\"return\": {}}\n{\"error\": {\"desc\": \"no such NIC\"}}\n";
  ASSERT_EQ(::send(qemu.get(), both.data(), both.size(), 0), static_cast<ssize_t>(both.size()));
  EXPECT_THAT(client.setLink("nic9", true, 10s, {}).message(), HasSubstr("no such NIC"));
}

TEST(Qmp, AnswersAreToldFromEventsAndRefusals) {
  EXPECT_EQ(qmpSetLink("nic1", false),
            "{\"arguments\":{\"name\":\"nic1\",\"up\":false},\"execute\":\"set_link\"}\n");
  const auto greeting = qmpAnswer(R"({"QMP": {"version": {}, "capabilities": []}})");
  ASSERT_TRUE(greeting.ok());
  EXPECT_FALSE(greeting->has_value());
  const auto event = qmpAnswer(R"({"event": "NIC_RX_FILTER_CHANGED", "data": {}})");
  ASSERT_TRUE(event.ok());
  EXPECT_FALSE(event->has_value());
  const auto done = qmpAnswer(R"({"return": {}})");
  ASSERT_TRUE(done.ok() && done->has_value());
  EXPECT_TRUE((*done)->ok());
  const auto refused =
      qmpAnswer(R"({"error": {"class": "DeviceNotFound", "desc": "Device 'nic9' not found"}})");
  ASSERT_TRUE(refused.ok() && refused->has_value());
  EXPECT_THAT((*refused)->message(), HasSubstr("nic9"));
  EXPECT_EQ(qmpAnswer("hello").status().code(), Code::kIo);
}

class Switch : public ::testing::Test {
 protected:
  static constexpr int kHosts = 3;
  static constexpr int kNics = 2;
  void SetUp() override {
    auto made = SwitchPorts::create(kHosts, kNics);
    ASSERT_TRUE(made.ok());
    ports_.emplace(std::move(*made));
  }
  /// A frame of a host to an address.
  std::vector<int> forwarded(int from, int nic, const MacAddress& to) {
    std::vector<std::uint8_t> frame(60, 0);
    std::copy(to.begin(), to.end(), frame.begin());
    return forward(*ports_, from, nic, frame);
  }
  static constexpr MacAddress kEverybody{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  std::optional<SwitchPorts> ports_;
};

TEST_F(Switch, SendsToOneToAllOthersOrNowhere) {
  EXPECT_THAT(forwarded(0, 1, macOf(2, 1)), ElementsAre(2));
  EXPECT_THAT(forwarded(1, 1, kEverybody), ElementsAre(0, 2));
  EXPECT_THAT(forwarded(0, 1, macOf(0, 1)), IsEmpty()) << "to itself";
  EXPECT_THAT(forwarded(0, 1, {0x02, 0, 0, 0, 0, 9}), IsEmpty()) << "a stranger";
  EXPECT_THAT(forward(*ports_, 0, 1, std::vector<std::uint8_t>(5)), IsEmpty()) << "too short";
}

TEST_F(Switch, CountsPerPort) {
  forwarded(0, 1, macOf(2, 1));
  forwarded(1, 1, kEverybody);
  EXPECT_EQ(ports_->at(0, 1).inFrames, 1U);
  EXPECT_EQ(ports_->at(0, 1).inBytes, 60U);
  EXPECT_EQ(ports_->at(0, 1).outFrames, 1U);
  EXPECT_EQ(ports_->at(2, 1).outFrames, 2U);
  EXPECT_EQ(ports_->at(2, 1).outBytes, 120U);
  EXPECT_EQ(ports_->at(2, 0).outFrames, 0U) << "another network";
}

TEST_F(Switch, KnowsRoceAmongOtherFrames) {
  std::vector<std::uint8_t> v4(42, 0);
  v4[12] = 0x08;
  v4[14] = 0x45;
  v4[14 + 9] = 17;
  v4[14 + 20 + 2] = 0x12;  // 4791
  v4[14 + 20 + 3] = 0xb7;
  std::vector<std::uint8_t> v6(62, 0);
  v6[12] = 0x86;
  v6[13] = 0xdd;
  v6[14 + 6] = 17;
  v6[14 + 40 + 2] = 0x12;
  v6[14 + 40 + 3] = 0xb7;
  for (const auto& frame : {v4, v6}) {
    EXPECT_TRUE(isRoce(frame));
    std::vector<std::size_t> meant{12, 13};
    const bool isV4 = frame.size() == v4.size();
    if (isV4) meant.push_back(14);
    const std::size_t protocol = isV4 ? 23 : 20, port = isV4 ? 36 : 56;
    meant.insert(meant.end(), {protocol, port, port + 1});
    for (std::size_t at = 0; at < frame.size(); ++at) {
      auto other = frame;
      other[at] ^= 1;
      EXPECT_EQ(isRoce(other), std::ranges::count(meant, at) == 0) << at;
    }
    for (std::size_t size = 0; size < port + 2; ++size) {
      EXPECT_FALSE(isRoce(std::span(frame).first(size))) << size;
    }
  }
  forward(*ports_, 0, 1, v4);
  forward(*ports_, 0, 1, std::vector<std::uint8_t>(60));
  EXPECT_EQ(ports_->at(0, 1).inRoceFrames, 1U);
  EXPECT_EQ(ports_->at(0, 1).inFrames, 2U);
}

TEST_F(Switch, ABlockedPortDropsBothWaysAndSaysSo) {
  ports_->at(0, 1).blocked = 1;
  EXPECT_THAT(forwarded(0, 1, macOf(1, 1)), IsEmpty());
  EXPECT_THAT(forwarded(1, 1, macOf(0, 1)), IsEmpty());
  EXPECT_THAT(forwarded(1, 1, kEverybody), ElementsAre(2));
  EXPECT_THAT(forwarded(0, 0, macOf(1, 0)), ElementsAre(1)) << "its other NIC";
  EXPECT_EQ(ports_->at(0, 1).dropped, 3U);
  EXPECT_EQ(ports_->at(0, 1).inFrames, 1U) << "what a host sends is counted all the same";
  ports_->at(0, 1).blocked = 0;
  EXPECT_THAT(forwarded(0, 1, macOf(1, 1)), ElementsAre(1));
}

TEST_F(Switch, IsSharedWithWhoHasTheDescriptor) {
  auto other = SwitchPorts::open(UniqueFd(::dup(ports_->fd())), kHosts, kNics);
  ASSERT_TRUE(other.ok());
  other->at(2, 1).blocked = 1;
  EXPECT_THAT(forwarded(0, 1, macOf(2, 1)), IsEmpty());
  EXPECT_EQ(other->at(2, 1).dropped, 1U);
}

}  // namespace
}  // namespace faultline::rdma_vm
