#include "harness/control/goodput_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace faultline::run {
namespace {

TEST(GoodputTest, TheFirstIntervalsAndWhatIsLeftOverDoNotCount) {
  const auto interval = [](double seconds, double bytes) {
    return fmt::format(R"({{"sum": {{"seconds": {}, "bytes": {}}}}})", seconds, bytes);
  };
  const std::string report =
      fmt::format(R"({{"intervals": [{}, {}, {}, {}, {}]}})", interval(0.1, 9e9),
                  interval(0.1, 9e9), interval(0.1, 1e6), interval(0.1, 2e6), interval(0.001, 9e9));
  EXPECT_EQ(*goodputOf(report), 120'000'000);
  for (const char* const wrong : {"", "{}", "[1]", R"({"intervals": []})", R"({"error": "no"})"}) {
    EXPECT_EQ(goodputOf(wrong).status().code(), Code::kInvalidArgument) << wrong;
  }
}

TEST(GoodputTest, IsTheMedianOfSomeProbes) {
  std::vector<BitsPerSecond> measured{500, 390, 380};
  std::size_t calls = 0;
  const Result<Goodput> goodput =
      medianGoodput([&]() -> Result<BitsPerSecond> { return measured.at(calls++); });
  ASSERT_TRUE(goodput.ok());
  EXPECT_EQ(goodput->value, 390);
  EXPECT_EQ(calls, measured.size());
  EXPECT_EQ(goodput->missing, "");
}

TEST(GoodputTest, AProbeThatHangsIsMadeAgainOnce) {
  const auto after = [](int hung) {
    int calls = 0;
    return medianGoodput([=]() mutable -> Result<BitsPerSecond> {
      if (++calls > 1 && calls <= 1 + hung) return errorf(Code::kDeadlineExceeded, "no end");
      return 400;
    });
  };
  EXPECT_EQ(after(1)->value, 400);
  const Goodput none = *after(2);
  EXPECT_FALSE(none.value);
  EXPECT_THAT(none.missing, ::testing::HasSubstr("iperf3, and not again: no end"));
}

TEST(GoodputTest, AProbeThatNobodyWaitsForIsNotMadeAgain) {
  int calls = 0;
  const auto goodput = medianGoodput([&]() -> Result<BitsPerSecond> {
    ++calls;
    return errorf(Code::kAborted, "nobody waits");
  });
  EXPECT_EQ(goodput.status().code(), Code::kAborted);
  EXPECT_EQ(calls, 1);
  BlockGoodput shared;
  EXPECT_EQ(shared.of(0, [&] { return goodput; }).status().code(), Code::kAborted);
}

TEST(GoodputTest, EachProbeMayHangOnce) {
  int calls = 0;
  const Result<Goodput> found = medianGoodput([&]() -> Result<BitsPerSecond> {
    if (++calls % 2 == 1) return errorf(Code::kDeadlineExceeded, "no end");
    return 400;
  });
  EXPECT_EQ(found->value, 400);
  EXPECT_EQ(calls, 6);
}

TEST(GoodputTest, ABlockIsMeasuredOnceAndAgainOnlyWhereThatFailed) {
  int calls = 0;
  BlockGoodput shared;
  const auto good = [&] { return Goodput{400 + ++calls}; };
  const auto bad = [&] {
    ++calls;
    return Goodput{std::nullopt, "no end"};
  };
  EXPECT_EQ(shared.of(0, bad)->missing, "no end");
  EXPECT_EQ(shared.of(0, good)->value, 402) << "tried again";
  EXPECT_EQ(shared.of(0, bad)->value, 402);
  EXPECT_EQ(shared.of(1, good)->value, 403) << "another block";
  EXPECT_EQ(calls, 3);
}

TEST(GoodputTest, OfABlockWhoseMeasureWasGivenUpThatOfAnotherIsNotTaken) {
  BlockGoodput shared;
  EXPECT_EQ(shared.of(0, [] { return Goodput{400}; })->value, 400);
  const auto aborted = [] { return Result<Goodput>(errorf(Code::kAborted, "nobody waits")); };
  EXPECT_FALSE(shared.of(1, aborted).ok());
  EXPECT_EQ(shared.of(1, [] { return Goodput{500}; })->value, 500);
}

TEST(GoodputTest, ProgramsAreFoundInThePath) {
  EXPECT_TRUE(findProgram("sh"));
  EXPECT_FALSE(findProgram("no-such-program-anywhere"));
}

}  // namespace
}  // namespace faultline::run
