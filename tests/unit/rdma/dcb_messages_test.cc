#include "injector/rdma/dcb_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include <cerrno>

#include "injector/faults/registry.h"
#include "tests/unit/rdma/recorded.h"

namespace faultline::rdma {
namespace {

using test::Bytes;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr Maxrates kNone{};
constexpr BitsPerSecond kLink = 100'000'000'000;

Maxrates all(std::uint64_t rate) {
  Maxrates rates;
  rates.fill(rate);
  return rates;
}

TEST(DcbMessagesTest, TheQuestionIsTheBytesThatTheKernelExpects) {
  EXPECT_EQ(test::hexOf(askMaxrates("eth0")),
            "20000000"
            "4e00"  // RTM_GETDCB
            "0000"
            "0000000000000000"
            "00150000"                    // dcbmsg: family, DCB_CMD_IEEE_GET, padding
            "090001006574683000000000");  // DCB_ATTR_IFNAME
}

TEST(DcbMessagesTest, TheChangeIsTheBytesThatTheKernelExpects) {
  Maxrates rates = kNone;
  rates[0] = 10'000'000;  // 10 Gbit/s
  rates[3] = 100'000;
  const std::string hex = test::hexOf(setMaxrates("eth0", rates));
  EXPECT_EQ(hex.substr(0, 64),
            "68000000"
            "4f00"  // RTM_SETDCB
            "0000"
            "0000000000000000"
            "00140000"  // DCB_CMD_IEEE_SET
            "090001006574683000000000");
  // DCB_ATTR_IEEE (with or without the mark "nested", which libnl sets since 3.5), MAXRATE.
  EXPECT_EQ(hex.substr(64, 4), "4800");
  EXPECT_THAT(hex.substr(68, 4), ::testing::AnyOf("0d80", "0d00"));
  EXPECT_EQ(hex.substr(72, 8), "44000700");
  EXPECT_EQ(hex.substr(80),
            "8096980000000000"
            "0000000000000000"
            "0000000000000000"
            "a086010000000000"
            "0000000000000000"
            "0000000000000000"
            "0000000000000000"
            "0000000000000000");
}

TEST(DcbMessagesTest, NumbersAreThoseOfTheKernelsHeaders) {
  EXPECT_EQ(RTM_GETDCB, 0x4e);
  EXPECT_EQ(RTM_SETDCB, 0x4f);
  EXPECT_EQ(DCB_CMD_IEEE_SET, 0x14);
  EXPECT_EQ(DCB_CMD_IEEE_GET, 0x15);
  EXPECT_EQ(DCB_ATTR_IFNAME, 1);
  EXPECT_EQ(DCB_ATTR_IEEE, 0x0d);
  EXPECT_EQ(DCB_ATTR_IEEE_MAXRATE, 7);
}

TEST(DcbMessagesTest, WhatWasAskedForIsReadAgain) {
  Maxrates rates = kNone;
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i] = 1000 * (i + 1);
  // The kernel answers in the same form: family header, name, and the limits inside IEEE.
  EXPECT_EQ(parseMaxrates(nlmsg_hdr(setMaxrates("eth0", rates).get())), rates);
}

TEST(DcbMessagesTest, AnAnswerWithoutLimitsSaysThatThereAreNone) {
  EXPECT_EQ(parseMaxrates(nlmsg_hdr(askMaxrates("eth0").get())), std::nullopt);
  // Inside IEEE only one of seven bytes too few.
  netlink::Message message = askMaxrates("eth0");
  message.nest(DCB_ATTR_IEEE, [](netlink::Message& nested) {
    const std::array<char, sizeof(Maxrates) - 1> cut{};
    nested.put(DCB_ATTR_IEEE_MAXRATE, cut.data(), cut.size());
  });
  EXPECT_EQ(parseMaxrates(nlmsg_hdr(message.get())), std::nullopt);
}

TEST(DcbMessagesTest, TheDriversErrorIsInsideOfTheAnswer) {
  const auto answer = [](int error) {
    netlink::Message message(RTM_SETDCB, 0, dcbmsg{});
    message.put(DCB_ATTR_IEEE, static_cast<std::uint8_t>(-error));
    return parseSetError(nlmsg_hdr(message.get()));
  };
  EXPECT_EQ(answer(0), 0);
  EXPECT_EQ(answer(EINVAL), EINVAL);
  EXPECT_EQ(answer(EOPNOTSUPP), EOPNOTSUPP);
}

TEST(DcbMessagesTest, AClassIsNamedByItsNumber) {
  using Class = std::optional<std::size_t>;
  EXPECT_EQ(trafficClassOf("all"), Class());
  EXPECT_EQ(trafficClassOf("0"), Class(0));
  EXPECT_EQ(trafficClassOf("7"), Class(7));
  const injector::FaultKind& throttle = *injector::findFaultKind("rdma_throttle");
  for (const std::string_view name : injector::findParameter(throttle, "traffic_class")->choices) {
    EXPECT_LT(trafficClassOf(name).value_or(0), kTrafficClasses) << name;
  }
}

TEST(DcbMessagesTest, LimitsAllClassesOrOne) {
  EXPECT_THAT(*planMaxrates(kNone, Rate{10'000'000'000}, std::nullopt, kLink), Each(10'000'000u));
  Maxrates expected = all(50'000'000);
  expected[5] = 10'000'000;
  EXPECT_EQ(*planMaxrates(all(50'000'000), Rate{10'000'000'000}, 5, kLink), expected);
}

TEST(DcbMessagesTest, PercentIsOfTheLink) {
  EXPECT_THAT(*planMaxrates(kNone, Percent{10}, std::nullopt, kLink), Each(10'000'000u));
  EXPECT_THAT(planMaxrates(kNone, Percent{10}, std::nullopt, 0).status().message(),
              HasSubstr("give a rate"));
}

TEST(DcbMessagesTest, RoundsDownToWhatAdaptersCanCount) {
  const auto limit = [](BitsPerSecond rate) {
    return planMaxrates(kNone, Rate{rate}, 0, 400'000'000'000)->front();
  };
  EXPECT_EQ(limit(100'000'000), 100'000u);
  EXPECT_EQ(limit(1'290'000'000), 1'200'000u);
  EXPECT_EQ(limit(25'500'000'000), 25'500'000u);  // 255 steps of 100 Mbit/s
  EXPECT_EQ(limit(25'600'000'000), 25'000'000u);  // from here on steps of 1 Gbit/s
  EXPECT_EQ(limit(255'000'000'000), 255'000'000u);
}

TEST(DcbMessagesTest, RefusesWhatHasNoNumberOrIsNotSlower) {
  const auto message = [](const ParameterValue& rate, const Maxrates& before) {
    const auto plan = planMaxrates(before, rate, std::nullopt, 400'000'000'000);
    EXPECT_EQ(plan.status().code(), Code::kInvalidArgument);
    return plan.status().message();
  };
  EXPECT_THAT(message(Rate{99'000'000}, kNone), HasSubstr("100 Mbit/s at least"));
  EXPECT_THAT(message(Rate{256'000'000'000}, kNone), HasSubstr("255 Gbit/s at most"));
  EXPECT_THAT(message(Rate{400'000'000'000}, kNone), HasSubstr("not slower than the link"));
  EXPECT_THAT(message(Percent{100}, kNone), HasSubstr("not slower than the link"));
  EXPECT_THAT(message(Rate{10'000'000'000}, all(10'000'000)), HasSubstr("limit of 10Gbit already"));
}

TEST(DcbMessagesTest, LimitsInWords) {
  EXPECT_EQ(formatMaxrates(kNone), "all classes: none");
  EXPECT_EQ(formatMaxrates(all(10'000'000)), "all classes: 10Gbit");
  Maxrates one = kNone;
  one[1] = 500'000;
  EXPECT_THAT(formatMaxrates(one), HasSubstr("0: none, 1: 500Mbit, 2: none"));
}

TEST(DcbMessagesTest, CutAnswersAreRead) {
  const std::string whole = Bytes(test::hexOf(setMaxrates("eth0", all(7)))).text();
  for (std::size_t size = NLMSG_HDRLEN; size <= whole.size(); ++size) {
    std::string cut = whole.substr(0, size);
    const auto length = static_cast<std::uint32_t>(size);
    std::memcpy(cut.data(), &length, sizeof length);
    const Bytes bytes = Bytes::raw(cut);
    EXPECT_EQ(parseMaxrates(bytes.header()).has_value(), size == whole.size()) << size;
    parseSetError(bytes.header());
  }
}

}  // namespace
}  // namespace faultline::rdma
