#include <gtest/gtest.h>

#include "injector/fault.h"

// How long a fault goes on observing when it is asked for its evidence.

namespace faultline::injector {
namespace {

/// Is sure after so many looks.
class Looker final : public Fault {
 public:
  explicit Looker(int looks) : enough_(looks) {}
  Status prepare() override { return okStatus(); }
  Status apply() override { return okStatus(); }
  Status step(TimePoint /*now*/) override {
    ++looks_;
    return status_;
  }
  Status revert() override { return okStatus(); }
  std::string mechanism() const override { return "none"; }
  Duration evidenceBudget() const override { return kBudget; }

  void fail() { status_ = errorf(Code::kIo, "cannot look"); }
  int looks() const { return looks_; }
  int demands() const { return demands_; }
  static constexpr Duration kBudget = 100ms;

 private:
  bool conclusive() const override { return looks_ >= enough_; }
  Evidence verdict() const override { return {"looker", "looks", "", conclusive()}; }
  Status demandEvidence() override {
    ++demands_;
    return okStatus();
  }

  const int enough_;
  int looks_ = 0;
  int demands_ = 0;
  Status status_;
};

TEST(EvidenceTest, WhatIsSureAlreadyIsNotLookedAtAgain) {
  Looker fault(0);
  const auto evidence = fault.evidence();
  ASSERT_TRUE(evidence.ok());
  EXPECT_TRUE(evidence->ok);
  EXPECT_EQ(fault.looks(), 0);
  EXPECT_EQ(fault.demands(), 0) << "no probes are needed";
}

TEST(EvidenceTest, LooksUntilItIsSure) {
  Looker fault(3);
  const auto evidence = fault.evidence();
  ASSERT_TRUE(evidence.ok());
  EXPECT_TRUE(evidence->ok);
  EXPECT_EQ(fault.looks(), 3);
  EXPECT_EQ(fault.demands(), 1);
}

TEST(EvidenceTest, LooksAboutEachMillisecondWhileItsBudgetLasts) {
  Looker fault(1'000'000);
  const TimePoint begin = now();
  const auto evidence = fault.evidence();
  ASSERT_TRUE(evidence.ok());
  EXPECT_FALSE(evidence->ok);
  EXPECT_GE(now() - begin, Looker::kBudget);
  EXPECT_GE(fault.looks(), 1);
  // No more than the pauses between them leave time for: the job needs the processor.
  EXPECT_LE(fault.looks(), Looker::kBudget / 1ms + 1);
}

TEST(EvidenceTest, IsGivenUpWhenNobodyWaitsOrNothingCanBeSeen) {
  Looker fault(1'000'000);
  ASSERT_TRUE(fault.evidence([] { return true; }).ok());
  EXPECT_EQ(fault.looks(), 1);
  fault.fail();
  EXPECT_EQ(fault.evidence().status().code(), Code::kIo);
  EXPECT_EQ(fault.looks(), 2);
}

}  // namespace
}  // namespace faultline::injector
