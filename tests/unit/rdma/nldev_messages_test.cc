#include "injector/rdma/nldev_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rdma/ib_user_ioctl_verbs.h>

#include "tests/support/corpus.h"
#include "tests/unit/rdma/recorded.h"

namespace faultline::rdma {
namespace {

using test::Bytes;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

// Length, type (client 5 in the upper bits, command in the lower ten), flags, sequence, port; then
// attributes: length, type, value, padding. The sequence and the two flags NLM_F_REQUEST and
// NLM_F_ACK come from the socket.
TEST(NldevMessagesTest, RequestsAreTheBytesThatTheKernelExpects) {
  EXPECT_EQ(test::hexOf(askDevices()),
            "10000000"
            "0114"
            "0000"
            "0000000000000000");
  EXPECT_EQ(test::hexOf(askPorts(3)),
            "18000000"
            "0514"
            "0000"
            "0000000000000000"
            "0800010003000000");
  EXPECT_EQ(test::hexOf(askPort(3, 1)),
            "20000000"
            "0514"
            "0000"
            "0000000000000000"
            "0800010003000000"
            "0800030001000000");
  EXPECT_EQ(test::hexOf(askQueuePairs(3)),
            "18000000"
            "0a14"
            "0000"
            "0000000000000000"
            "0800010003000000");
  EXPECT_EQ(test::hexOf(askContexts(3)),
            "18000000"
            "1614"
            "0000"
            "0000000000000000"
            "0800010003000000");
  EXPECT_EQ(test::hexOf(askCounters(3, 2)),
            "20000000"
            "1114"
            "0000"
            "0000000000000000"
            "0800010003000000"
            "0800030002000000");
  EXPECT_EQ(test::hexOf(askCharacterDevice(3)),
            "24000000"
            "0f14"
            "0000"
            "0000000000000000"
            "0800010003000000"
            "0b0045007576657262730000");  // CHARDEV_TYPE "uverbs"
}

TEST(NldevMessagesTest, LinksAreAddedByNameAndDeletedByIndex) {
  EXPECT_EQ(test::hexOf(addLink("rxe0", "rxe", "eth0")),
            "30000000"
            "0314"
            "0000"
            "0000000000000000"
            "090002007278653000000000"    // DEV_NAME
            "0800410072786500"            // LINK_TYPE
            "090033006574683000000000");  // NDEV_NAME
  EXPECT_EQ(test::hexOf(deleteLink(7)),
            "18000000"
            "0414"
            "0000"
            "0000000000000000"
            "0800010007000000");
}

TEST(NldevMessagesTest, NoRequestHasAFlagThatTheKernelTakesForADump) {
  for (const netlink::Message& message : {addLink("a", "rxe", "b"), deleteLink(1), askDevices()}) {
    EXPECT_EQ(nlmsg_hdr(message.get())->nlmsg_flags & NLM_F_DUMP, 0);
  }
}

TEST(NldevMessagesTest, ReadsADevice) {
  const Device device = parseDevice(Bytes(test::kDeviceAnswer).header());
  EXPECT_EQ(device.index, 0u);
  EXPECT_EQ(device.name, "rxe0");
  EXPECT_EQ(device.ports, 1u);
  EXPECT_EQ(device.protocol, "roce");
}

TEST(NldevMessagesTest, ReadsAPortWithItsInterface) {
  const Port port = parsePort(Bytes(test::kPortAnswer).header());
  EXPECT_EQ(port.device, "rxe0");
  EXPECT_EQ(port.number, 1u);
  EXPECT_EQ(port.state, PortState::kActive);
  EXPECT_EQ(port.physical, PhysicalState::kLinkUp);
  EXPECT_EQ(port.netdev_ifindex, 2);
  EXPECT_EQ(port.netdev, "eth0");
}

TEST(NldevMessagesTest, ReadsQueuePairsOfProcessesAndOfTheKernel) {
  const auto pairs = parseQueuePairs(Bytes(test::kQueuePairsAnswer).header());
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].device, "rxe0");
  EXPECT_EQ(pairs[0].port, 1u);
  EXPECT_EQ(pairs[0].number, 17u);
  EXPECT_EQ(pairs[0].remote_number, 17u);
  EXPECT_EQ(pairs[0].type, "RC");
  EXPECT_EQ(pairs[0].state, "RTR");
  EXPECT_EQ(pairs[0].pid, 151u);
  EXPECT_EQ(pairs[0].kernel_owner, "");
  EXPECT_EQ(pairs[1].type, "GSI");
  EXPECT_EQ(pairs[1].state, "RTS");
  EXPECT_EQ(pairs[1].pid, std::nullopt);
  EXPECT_EQ(pairs[1].remote_number, std::nullopt);
  EXPECT_EQ(pairs[1].kernel_owner, "ib_core");
}

TEST(NldevMessagesTest, ReadsWhoHasTheDeviceOpen) {
  EXPECT_THAT(parseContexts(Bytes(test::kContextsAnswer).header()), ElementsAre(148u, 151u));
}

TEST(NldevMessagesTest, CountsWhatTheDeviceHas) {
  EXPECT_EQ(test::hexOf(askResources(3)),
            "18000000"
            "0914"
            "0000"
            "0000000000000000"
            "0800010003000000");
  const Counters resources = parseResources(Bytes("44000000"
                                                  "0914"
                                                  "0000"
                                                  "0000000000000000"
                                                  "34000f80"  // RES_SUMMARY
                                                  "18001080"  // an entry: "ctx", 2
                                                  "0800110063747800"
                                                  "0c0012000200000000000000"
                                                  "18001080"  // an entry: "qp", 5
                                                  "0700110071700000"
                                                  "0c0012000500000000000000")
                                                .header());
  EXPECT_EQ(resources, (Counters{{"ctx", 2}, {"qp", 5}}));
}

TEST(NldevMessagesTest, ReadsCounters) {
  const Counters counters = parseCounters(Bytes(test::kCountersAnswer).header());
  EXPECT_EQ(counters.size(), 15u);
  EXPECT_EQ(counters.at("sent_pkts"), 8158u);
  EXPECT_EQ(counters.at("rcvd_pkts"), 27764u);
  EXPECT_EQ(counters.at("link_downed"), 0u);
}

TEST(NldevMessagesTest, ReadsTheDriver) {
  const CharacterDevice device = parseCharacterDevice(Bytes(test::kCharacterDeviceAnswer).header());
  EXPECT_EQ(device.name, "uverbs0");
  EXPECT_EQ(device.driver_id, static_cast<std::uint32_t>(RDMA_DRIVER_RXE));
}

TEST(NldevMessagesTest, StatesHaveTheNamesThatToolsPrint) {
  EXPECT_EQ(toString(PortState::kActive), "ACTIVE");
  EXPECT_EQ(toString(PortState::kDown), "DOWN");
  EXPECT_EQ(toString(PhysicalState::kDisabled), "DISABLED");
  EXPECT_EQ(toString(PhysicalState::kPolling), "POLLING");
  EXPECT_EQ(toString(static_cast<PortState>(9)), "state 9");
  EXPECT_EQ(toString(static_cast<PhysicalState>(255)), "state 255");
}

/// All readers on one message; whatever it is, they come back.
std::size_t readAll(const std::string& text) {
  const Bytes bytes = Bytes::raw(text);
  // As the socket does: what is shorter than its own header says is no message.
  if (nlmsg_ok(bytes.header(), static_cast<int>(text.size())) == 0) return 0;
  std::size_t found = parseDevice(bytes.header()).name.size();
  found += parsePort(bytes.header()).netdev.size();
  for (const QueuePair& pair : parseQueuePairs(bytes.header())) found += pair.type.size();
  found += parseContexts(bytes.header()).size();
  found += parseResources(bytes.header()).size() + parseCounters(bytes.header()).size();
  return found + parseCharacterDevice(bytes.header()).name.size();
}

TEST(NldevMessagesTest, EveryCutAnswerIsRead) {
  for (const auto hex : {test::kDeviceAnswer, test::kPortAnswer, test::kQueuePairsAnswer,
                         test::kContextsAnswer, test::kCountersAnswer}) {
    const std::string whole = Bytes(hex).text();
    for (std::size_t size = NLMSG_HDRLEN; size <= whole.size(); ++size) {
      std::string cut = whole.substr(0, size);
      const auto length = static_cast<std::uint32_t>(size);
      std::memcpy(cut.data(), &length, sizeof length);
      readAll(cut);
    }
  }
}

TEST(NldevMessagesTest, MutatedAnswersAreRead) {
  std::vector<std::string> answers;
  for (const auto hex :
       {test::kDeviceAnswer, test::kPortAnswer, test::kQueuePairsAnswer, test::kContextsAnswer,
        test::kCountersAnswer, test::kCharacterDeviceAnswer}) {
    answers.push_back(Bytes(hex).text());
  }
  int told = 0;
  constexpr int kAnswers = 20'000;
  testing::feedMutations(answers, std::string_view("\0\1\2\3\4\5\7\x08\x0c\x80\xff", 11), kAnswers,
                         [&](int, const std::string& text) { told += readAll(text) > 0 ? 1 : 0; });
  EXPECT_GT(told, kAnswers / 10);  // not all were thrown away by their length
}

TEST(NldevMessagesTest, ATextWithoutAnEndEndsWithItsAttribute) {
  // DEV_NAME of four bytes, none of them zero.
  const Device device = parseDevice(Bytes("18000000"
                                          "0114"
                                          "0200"
                                          "0000000000000000"
                                          "0800020072786530")
                                        .header());
  EXPECT_EQ(device.name, "rxe0");
}

}  // namespace
}  // namespace faultline::rdma
