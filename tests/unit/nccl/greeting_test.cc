#include "resilient_ccl/nccl/greeting.h"

#include <gtest/gtest.h>

#include <string>

// What an answer at the meeting may be made of.

namespace faultline::nccl {
namespace {

class AnswerTest : public ::testing::Test {
 protected:
  static std::string said(const std::string& refusal) {
    Answer answer;
    answer.refusal = refusal;
    answer.incarnation = 7;
    return answer.serialize();
  }
  /// A refusal's words, and those of a welcome's address, with the lengths before them.
  static std::string refusalWithAnAddress() {
    constexpr std::size_t kFixed = sizeof(std::uint32_t) + sizeof(std::uint64_t);
    const std::string words = "no";
    const std::string refused = said(words);
    const std::size_t length = (refused.size() - kFixed - words.size()) / 2;
    const std::string welcome = said("");
    return refused.substr(0, refused.size() - length) + welcome.substr(kFixed + length);
  }
};

TEST_F(AnswerTest, ComesBackAsItWasSaid) {
  const auto refused = Answer::parse(said("no"));
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->refusal, "no");
  EXPECT_EQ(refused->incarnation, 7u);
}

TEST_F(AnswerTest, IsNotUnderstoodWithAnythingElseInIt) {
  const std::string good = said("no");
  std::string other = good;
  other[0] = static_cast<char>(other[0] ^ 1);
  EXPECT_FALSE(Answer::parse(other).ok()) << "of another protocol";
  EXPECT_FALSE(Answer::parse(good + "x").ok()) << "surplus";
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(Answer::parse(good.substr(0, size)).ok()) << size << " bytes";
  }
  EXPECT_FALSE(Answer::parse(refusalWithAnAddress()).ok()) << "who refuses has no address to give";
}

}  // namespace
}  // namespace faultline::nccl
