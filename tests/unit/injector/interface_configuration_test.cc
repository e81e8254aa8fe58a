// The configuration of an interface as a value: from the kernel's messages, to JSON and back.
#include "injector/netlink/interface_configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include "base/random.h"
#include "injector/netlink/message.h"
#include "tests/unit/injector/netlink_messages.h"

namespace faultline::netlink {
namespace {

using ::testing::HasSubstr;
using Json = InterfaceConfiguration::Json;

/// Without a kernel: what read() would have made of these messages.
Json jsonOf(const std::vector<Message>& messages) {
  return {{"ifindex", kPort},
          {"noted_at_ns", 1'000'000'000},
          {"entries", JsonWriter<Json>::write(entriesOf(messages))},
          {"ipv6_mtu", 1380}};
}

TEST(InterfaceConfiguration, JsonGivesTheSameConfiguration) {
  const Json json = jsonOf(everything());
  ASSERT_EQ(json["entries"].size(), 8u);
  const auto read = InterfaceConfiguration::fromJson(json);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->toJson(), json);
  EXPECT_EQ(read->ifindex(), kPort);
}

TEST(InterfaceConfiguration, BadJsonIsRefusedWithThePlace) {
  const Json good = jsonOf(everything());
  const auto said = [](const Json& json) {
    const auto read = InterfaceConfiguration::fromJson(json);
    EXPECT_EQ(read.status().code(), Code::kInvalidArgument);
    return read.status().message();
  };
  EXPECT_THAT(said(Json::array()), HasSubstr("expected an object"));
  EXPECT_THAT(said(Json::object()), HasSubstr("ifindex: is missing"));
  Json bad = good;
  bad["ifindex"] = 0;
  EXPECT_THAT(said(bad), HasSubstr("ifindex: expected at least 1"));
  bad = good;
  bad["ifindex"] = kPort + 1;
  EXPECT_THAT(said(bad), HasSubstr("entries[0]: it is no address of interface 6"));
  bad = good;
  bad["entries"][2]["request"] = "0g";
  EXPECT_THAT(said(bad), HasSubstr("entries[2].request: it is not pairs of hexadecimal digits"));
  bad = good;
  bad["entries"][3]["kind"] = "address";
  EXPECT_THAT(said(bad), HasSubstr("entries[3]: it is no address"));
  bad = good;
  bad["entries"][3]["request"] = "";
  EXPECT_THAT(said(bad), HasSubstr("entries[3]: it is no route"));
  bad = good;
  bad["entries"][1]["place"] = "above";
  EXPECT_THAT(said(bad), HasSubstr("entries[1].place: expected one of alone, before, behind"));
}

// Truncated and flipped: refused, or another configuration that is one; never a crash.
TEST(InterfaceConfiguration, DamagedRequestsAreRefusedOrWellFormed) {
  const Json good = jsonOf(everything());
  int refused = 0;
  int taken = 0;
  const auto judge = [&](const Json& json) {
    auto read = InterfaceConfiguration::fromJson(json);
    if (!read.ok()) {
      EXPECT_EQ(read.status().code(), Code::kInvalidArgument);
      EXPECT_FALSE(read.status().message().empty());
      ++refused;
      return;
    }
    ++taken;
    EXPECT_EQ(read->toJson()["entries"], json["entries"]);
    read->rebind(kPort + 100);
    EXPECT_TRUE(InterfaceConfiguration::fromJson(read->toJson()).ok());
    for (const ConfigurationEntry& one : read->entries()) (void)afterTime(one, 5s);
  };
  for (std::size_t i = 0; i < good["entries"].size(); ++i) {
    const auto hex = good["entries"][i]["request"].get<std::string>();
    for (std::size_t length = 0; length < hex.size(); ++length) {
      Json cut = good;
      cut["entries"][i]["request"] = hex.substr(0, length);
      judge(cut);
    }
    const std::string bytes = RequestBytes::fromHex(hex)->bytes;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      RequestBytes flipped{bytes};
      flipped.bytes[bit / 8] = static_cast<char>(flipped.bytes[bit / 8] ^ (1 << (bit % 8)));
      Json json = good;
      json["entries"][i]["request"] = flipped.hex();
      judge(json);
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 100) << "the other half of the test says nothing";
}

TEST(InterfaceConfiguration, DamagedTextIsRefusedOrReadToTheEnd) {
  const std::string text = jsonOf(everything()).dump();
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto json = parseJson<Json>(std::string_view(text).substr(0, length));
    EXPECT_FALSE(json.ok()) << length;
  }
  Random random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    const auto json = parseJson<Json>(damaged);
    if (json.ok()) (void)InterfaceConfiguration::fromJson(*json);
  }
}

TEST(InterfaceConfiguration, RebindingIsWhatTheKernelTellsOfTheOtherIndex) {
  auto read = InterfaceConfiguration::fromJson(jsonOf(everything()));
  ASSERT_TRUE(read.ok());
  const Json before = read->toJson();
  read->rebind(42);
  EXPECT_EQ(read->ifindex(), 42);
  Belongings of{.ifindex = 42};
  const Message multi = multipath({kOther, 42});
  EXPECT_EQ(read->entries()[4].request, entryOf(nlmsg_hdr(multi.get()), of)->request);
  const Message first = address(42);
  EXPECT_EQ(read->entries()[0].request, entryOf(nlmsg_hdr(first.get()), of)->request);
  EXPECT_TRUE(InterfaceConfiguration::fromJson(read->toJson()).ok());
  EXPECT_EQ(read->toJson()["entries"].dump().find("2a000000") == std::string::npos, false);
  read->rebind(kPort);
  EXPECT_EQ(read->toJson(), before);
}

TEST(ConfigurationEntry, OfOthersAndWhatComesBackByItselfIsNotNoted) {
  EXPECT_FALSE(entry(address(kOther)));
  EXPECT_FALSE(entry(nexthop(kOther)));
  EXPECT_FALSE(entry(group())) << "no member of the interface";
  EXPECT_TRUE(entry(group(), {kObject}));
  EXPECT_FALSE(entry(route(kOther)));
  EXPECT_FALSE(entry(multipath({kOther, kOther})));
  EXPECT_FALSE(entry(routeByObject(kGroup))) << "though its object's interface is told with it";
  EXPECT_FALSE(entry(neighbour(kOther, NUD_PERMANENT)));
  EXPECT_FALSE(entry(neighbour(kPort, NUD_REACHABLE)));
  for (const std::uint8_t protocol : {RTPROT_KERNEL, RTPROT_REDIRECT, RTPROT_RA}) {
    Message message = route(kPort);
    static_cast<rtmsg*>(nlmsg_data(nlmsg_hdr(message.get())))->rtm_protocol = protocol;
    EXPECT_FALSE(entry(message)) << int{protocol};
  }
}

TEST(ConfigurationEntry, StatesAreNotNoted) {
  Message alive = multipath({kOther, kPort});
  Message plain = multipath({kOther, kPort});
  static_cast<rtmsg*>(nlmsg_data(nlmsg_hdr(plain.get())))->rtm_flags = 0;
  EXPECT_EQ(entry(alive), entry(plain));
  Message object = nexthop(kPort);
  static_cast<nhmsg*>(nlmsg_data(nlmsg_hdr(object.get())))->nh_scope = 0;
  EXPECT_EQ(entry(object), entry(nexthop(kPort)));
}

TEST(ConfigurationEntry, LifetimesRunOutFromWhenTheyWereNoted) {
  const auto forever = entry(address(kPort));
  EXPECT_EQ(afterTime(*forever, 1000h), forever);
  const auto limited = entry(address(kPort, 100));
  EXPECT_EQ(afterTime(*limited, 40s), entry(address(kPort, 60)));
  EXPECT_EQ(afterTime(*limited, -40s), limited) << "noted in another boot";
  EXPECT_FALSE(afterTime(*limited, 100s));
  EXPECT_TRUE(afterTime(*entry(route(kPort)), 29s));
  EXPECT_FALSE(afterTime(*entry(route(kPort)), 30s));
}

}  // namespace
}  // namespace faultline::netlink
