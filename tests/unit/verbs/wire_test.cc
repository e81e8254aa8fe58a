#include "injector/verbs/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace faultline::injector::verbs {
namespace {

using ::testing::HasSubstr;

Rule someRule() {
  return {.effect = Effect::kCompletionRewrite,
          .match = {"mlx5_0", 4'000'000'000, 18, 65'535, "fe80::1"},
          .one = true,
          .side = Side::kBoth,
          .trigger = {5, 1'000'000, 0.125, 3, UINT64_MAX},
          .error = 12,
          .status = 13,
          .delay = 1500us,
          .bitsPerSecond = 400'000'000'000,
          .lease = 2s};
}

TEST(VerbsMessageTest, SaysItsVersionAndIsReadAgain) {
  Message message("arm");
  message.add("key", "a value = with what is printable");
  message.add("number", 7);
  message.add("qp", "one");
  message.add("qp", "two");
  EXPECT_EQ(
      message.serialize(),
      "faultline-verbs 4 arm\nkey=a value = with what is printable\nnumber=7\nqp=one\nqp=two\n");
  const auto read = Message::parse(message.serialize());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->verb(), "arm");
  EXPECT_EQ(read->fields(), message.fields());
}

TEST(VerbsMessageTest, GarbageIsRefused) {
  const std::string head = "faultline-verbs 4 arm\n";
  for (const std::string& packet :
       {std::string(), std::string("\n"), std::string("GET / HTTP/1.1\r\n\r\n"),
        std::string("faultline-verbs 4 arm"), std::string("faultline-verbs 4\n"),
        std::string("faultline-verbs 4 \n"), std::string("faultline-verbs 4 Arm\n"),
        std::string("faultline-verbs 4 arm now\n"), head + "key", head + "key\n", head + "=value\n",
        head + "Key=value\n", head + "key=\x01\n", head + "a=1\na=2\n", head + "a=1\nb",
        head + std::string("a=\0b\n", 5),
        head + "a=" + std::string(Message::kMostBytes, 'x') + "\n"}) {
    const auto read = Message::parse(packet);
    ASSERT_FALSE(read.ok()) << packet;
    EXPECT_EQ(read.status().code(), Code::kInvalidArgument) << packet;
  }
}

// Each is compared with those before it: as many as fit into a packet held the shim's thread for 75
// ms.
TEST(VerbsMessageTest, ThereIsALimitToFieldsAndNoneToQueuePairs) {
  const auto packet = [](std::size_t keys) {
    std::string text = "faultline-verbs 4 arm\n";
    for (std::size_t i = 0; i < keys; ++i) {
      text +=
          fmt::format("{}{}=\n", static_cast<char>('a' + i / 26), static_cast<char>('a' + i % 26));
    }
    return text;
  };
  EXPECT_TRUE(Message::parse(packet(Message::kMostKeys)).ok());
  const auto refused = Message::parse(packet(Message::kMostKeys + 1));
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("too many fields"));
  std::string many = packet(Message::kMostKeys);
  for (std::size_t i = 0; i < 10 * Message::kMostKeys; ++i) many += "qp=\n";
  EXPECT_TRUE(Message::parse(many).ok());
}

TEST(VerbsMessageTest, AnotherVersionIsToldApart) {
  const auto read = Message::parse("faultline-verbs 1 hello\n");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), Code::kUnsupported);
  EXPECT_THAT(read.status().message(), HasSubstr("same build"));
}

// A message with bytes changed at random is read as some message or refused, and what is read is
// written again as it came.
TEST(VerbsMessageTest, MutationsAreReadOrRefused) {
  Message original("arm");
  addRule(original, someRule());
  const std::string text = original.serialize();
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    std::string packet = text;
    for (std::uint64_t i = random.below(4) + 1; i > 0; --i) {
      const std::size_t place = random.below(packet.size());
      switch (random.below(3)) {
        case 0:
          packet[place] = static_cast<char>(random.below(256));
          break;
        case 1:
          packet.erase(place, random.below(20));
          break;
        default:
          packet.insert(place, 1, static_cast<char>(random.below(256)));
      }
      if (packet.empty()) packet = "x";
    }
    const auto read = Message::parse(packet);
    if (!read.ok()) {
      ++refused;
      continue;
    }
    EXPECT_EQ(read->serialize(), packet) << "seed " << seed;
    const auto rule = readRule(*read);
    if (rule.ok()) {
      EXPECT_TRUE(check(*rule).ok()) << "seed " << seed;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(VerbsMessageTest, NumbersAreWholeAndInRange) {
  Message message("x");
  message.add("good", 42);
  message.add("big", "18446744073709551616");
  message.add("negative", "-1");
  message.add("more", "1 ");
  message.add("none", "");
  EXPECT_EQ(*message.number("good"), 42u);
  EXPECT_FALSE(message.number("good", 41).ok());
  for (const char* const key : {"big", "negative", "more", "none", "missing"}) {
    EXPECT_EQ(message.number(key).status().code(), Code::kInvalidArgument) << key;
  }
}

TEST(VerbsMessageTest, ValuesCannotBreakOut) {
  Message message("x");
  message.add("text", "a\nfault=1\x7f");
  const auto read = Message::parse(message.serialize());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->find("text"), "a?fault=1?");
  EXPECT_EQ(read->find("fault"), std::nullopt);
}

TEST(VerbsWireTest, RulesArriveAsTheyWere) {
  Message message("arm");
  addRule(message, someRule());
  const auto rule = readRule(*Message::parse(message.serialize()));
  ASSERT_TRUE(rule.ok()) << rule.status().message();
  EXPECT_EQ(*rule, someRule());
}

TEST(VerbsWireTest, RulesWithWhatNobodyKnowsOrWithoutAFieldAreRefused) {
  Message message("arm");
  addRule(message, someRule());
  Message more = message;
  more.add("surprise", 1);
  EXPECT_THAT(readRule(more).status().message(), HasSubstr("surprise"));
  for (const auto& [left_out, unused] : message.fields()) {
    Message less("arm");
    for (const auto& [key, value] : message.fields()) {
      if (key != left_out) less.add(key, value);
    }
    const bool may_be_empty = left_out == "device" || left_out == "peer_gid";
    EXPECT_EQ(readRule(less).ok(), may_be_empty) << left_out;
  }
}

TEST(VerbsWireTest, CountersAndFactsArriveAsTheyWere) {
  const Counters counters{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, UINT64_MAX};
  Message message("ok");
  addCounters(message, counters);
  EXPECT_EQ(*readCounters(message), counters);
  EXPECT_FALSE(readCounters(Message("ok")).ok());

  const ShimFacts shim{1, 2, 3, 4, 5, 6};
  Message hello("ok");
  addShimFacts(hello, shim);
  EXPECT_EQ(*readShimFacts(hello), shim);

  const QueuePairFacts facts{"mlx5_0", 1, 2, 3, "fe80::1", "RC", "RTS"};
  EXPECT_EQ(*readFacts(writeFacts(facts)), facts);
  const QueuePairFacts bare{"rxe0", 1, 0, 0, "", "UD", "RESET"};
  EXPECT_EQ(*readFacts(writeFacts(bare)), bare);
  for (const char* const text :
       {"", "dev=a", "dev=a qpn=x type=RC state=RTS peer_qpn=0 peer_lid=0 peer_gid=",
        "dev=a qpn=1 type=RC state=RTS peer_qpn=0 peer_lid=0 peer_gid= more",
        "qpn=1 dev=a type=RC state=RTS peer_qpn=0 peer_lid=0 peer_gid=",
        "dev=a qpn= type=RC state=RTS peer_qpn=0 peer_lid=0 peer_gid=",
        "dev=a qpn=1x type=RC state=RTS peer_qpn=0 peer_lid=0 peer_gid=",
        "dev=a qpn=1 typex=RC state=RTS peer_qpn=0 peer_lid=0 peer_gid="}) {
    EXPECT_FALSE(readFacts(text).ok()) << text;
  }
  // Each word must be there, and be the one.
  const std::string whole = "dev=a qpn=1 type=RC state=RTS peer_qpn=0 peer_lid=0 peer_gid=";
  ASSERT_TRUE(readFacts(whole).ok());
  for (std::size_t at = 0; at < whole.size(); at = whole.find('=', at) + 1) {
    std::string other = whole;
    other[whole.find('=', at)] = ':';
    EXPECT_FALSE(readFacts(other).ok()) << other;
    if (whole.find('=', at) + 1 == whole.size()) break;
  }
}

TEST(VerbsWireTest, ErrorsKeepCodeAndText) {
  const Status status(Code::kNotFound, "no such\nthing");
  const Status read = readError(*Message::parse(errorMessage(status).serialize()));
  EXPECT_EQ(read.code(), Code::kNotFound);
  EXPECT_EQ(read.message(), "no such?thing");
  EXPECT_EQ(readError(Message("error")).code(), Code::kInternal);
}

}  // namespace
}  // namespace faultline::injector::verbs
