#include "resilient_ccl/nccl/handle.h"

#include <gtest/gtest.h>

#include "resilient_ccl/nccl/greeting.h"

namespace faultline::nccl {
namespace {

using Bytes128 = std::array<std::byte, kNetHandleBytes>;

Handle sample() {
  return {.rendezvous = {0x0a000102, 4242},
          .process = ProcessId::of(auth::KeyPair::random().publicKey()),
          .token = auth::JobKey::random(),
          .listener = 0x1122334455667788,
          .name = "node7:4711",
          .node = 0x8877665544332211};
}

TEST(HandleTest, WhatIsWrittenIsRead) {
  const Handle handle = sample();
  Bytes128 bytes;
  handle.write(bytes);
  const auto read = Handle::read(bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->rendezvous, handle.rendezvous);
  EXPECT_EQ(read->process, handle.process);
  EXPECT_EQ(read->token, handle.token);
  EXPECT_EQ(read->listener, handle.listener);
  EXPECT_EQ(read->name, handle.name);
  EXPECT_EQ(read->node, handle.node);
  // Where the connecting end notes its attempt.
  for (std::size_t i = kNetHandleBytes - 8; i < kNetHandleBytes; ++i) {
    EXPECT_EQ(bytes[i], std::byte{0});
  }
}

TEST(HandleTest, ALongNameIsCutOff) {
  Handle handle = sample();
  handle.name = std::string(200, 'n');
  Bytes128 bytes;
  handle.write(bytes);
  EXPECT_EQ(Handle::read(bytes)->name, std::string(Handle::kLongestName, 'n'));
}

TEST(HandleTest, OfALongHostsNameTheBeginningAndTheEndAreKept) {
  EXPECT_EQ(nameOfProcess("node7", 4711, "10.0.0.7"), "node7:4711 (10.0.0.7)");
  const std::string worker =
      nameOfProcess("pytorchjob-llama-70b-worker-12", 4194304, "192.168.100.200");
  EXPECT_EQ(worker, "pytorchjob-ll..-70b-worker-12:4194304 (192.168.100.200)");
  EXPECT_LE(worker.size(), Handle::kLongestName);
  // As much of it as there is room for.
  for (std::size_t length = 1; length <= 64; ++length) {
    const std::string host = std::string(length - 1, 'a') + 'z';
    const std::string name = nameOfProcess(host, 77, "10.0.0.1");
    EXPECT_EQ(name.size(), std::min(length + 14, Handle::kLongestName));
    EXPECT_NE(name.find("z:77 (10.0.0.1)"), std::string::npos) << name;
    EXPECT_EQ(name.find("..") == std::string::npos, length + 14 <= Handle::kLongestName) << name;
  }
}

TEST(HandleTest, AHandleOfAnotherPluginIsRefusedWithAHint) {
  Bytes128 bytes{};
  const auto read = Handle::read(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().message().find("NCCL_NET_PLUGIN=faultline"), std::string::npos);
}

TEST(HandleTest, AHandleOfAnotherVersionIsRefused) {
  Bytes128 bytes;
  sample().write(bytes);
  bytes[4] = std::byte{99};
  const auto read = Handle::read(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().message().find("version 99"), std::string::npos);
}

Greeting greeting() {
  Greeting it;
  it.key = auth::KeyPair::random().publicKey();
  auth::fillRandom(it.nonce);
  it.incarnation = 77;
  it.listener = 3;
  it.connection = 9;
  it.terms = {.rails = 2, .chunkBytes = 65536, .policy = 1, .smallMessage = 7};
  it.name = "a:1";
  it.address.rails = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};
  it.address.management = {9, 10};
  return it;
}

TEST(GreetingTest, WhatIsSaidIsHeard) {
  const Greeting said = greeting();
  const auto heard = Greeting::parse(said.serialize());
  ASSERT_TRUE(heard.ok()) << heard.status().message();
  EXPECT_EQ(heard->key, said.key);
  EXPECT_EQ(heard->nonce, said.nonce);
  EXPECT_EQ(heard->process(), said.process());
  EXPECT_EQ(Greeting::keyOf(said.serialize()).value(), said.key);
  EXPECT_EQ(heard->incarnation, said.incarnation);
  EXPECT_EQ(heard->listener, said.listener);
  EXPECT_EQ(heard->connection, said.connection);
  EXPECT_EQ(heard->terms, said.terms);
  EXPECT_EQ(heard->name, said.name);
  EXPECT_EQ(heard->address.serialize(), said.address.serialize());

  const Answer answer{.refusal = {}, .incarnation = 5, .address = said.address};
  const auto answered = Answer::parse(answer.serialize());
  ASSERT_TRUE(answered.ok());
  EXPECT_EQ(answered->incarnation, 5U);
  EXPECT_EQ(answered->address.serialize(), said.address.serialize());
  const auto refused = Answer::parse(Answer{.refusal = "no", .incarnation = 0}.serialize());
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->refusal, "no");
}

TEST(GreetingTest, WhatIsCutOffOrChangedIsRefused) {
  const std::string whole = greeting().serialize();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(Greeting::parse(whole.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(Greeting::parse(whole + "x").ok());
  EXPECT_FALSE(Answer::parse(whole).ok());
  for (const std::string& bytes : {std::string(), whole.substr(0, 35), "x" + whole}) {
    EXPECT_FALSE(Greeting::keyOf(bytes).ok());
  }
}

}  // namespace
}  // namespace faultline::nccl
