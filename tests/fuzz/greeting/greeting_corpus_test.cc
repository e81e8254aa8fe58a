#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "resilient_ccl/nccl/greeting.h"
#include "tests/fuzz/greeting/greeting_entry.h"
#include "tests/support/corpus.h"

namespace faultline::fuzz {
namespace {

bool feed(const std::string& bytes) {
  return greetingReader(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

/// What processes say to each other.
std::vector<std::string> messages() {
  fabric::ProcessAddress address;
  address.host = "node1";
  address.local = "local";
  address.management = {0x0a000001, 4242};
  std::vector<std::string> texts{
      nccl::Answer{.refusal = "no", .incarnation = 3}.serialize(),
      nccl::Answer{.refusal = {}, .incarnation = 3, .address = address}.serialize()};
  for (int rails = 0; rails < 3; ++rails) {
    nccl::Greeting greeting;
    greeting.name = "node1:7 (10.0.0.1)";
    greeting.address = address;
    texts.push_back(greeting.serialize());
    address.rails.push_back({.data = {0x0a010001, 1}, .control = {0x0a010001, 2}});
  }
  return texts;
}

TEST(GreetingFuzzTest, WhatProcessesSayKeepsThePromises) {
  for (const std::string& text : messages()) EXPECT_TRUE(feed(text));
}

TEST(GreetingFuzzTest, MutationsKeepThePromises) {
  constexpr int kTexts = 20'000;
  int read = 0;
  testing::feedMutations(messages(), std::string("\0\1\2\6\x7f\xff", 6), kTexts,
                         [&](int i, const std::string& text) {
                           SCOPED_TRACE(i);
                           read += feed(text) ? 1 : 0;
                         });
  EXPECT_GT(read, kTexts / 50);  // some changes are deep enough to be read
  EXPECT_LT(read, kTexts);
}

}  // namespace
}  // namespace faultline::fuzz
