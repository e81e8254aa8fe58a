#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "injector/fault.h"

namespace faultline::testing {

/// It has evidence at once, and ends by itself after `lasts` without anybody noticing. Nobody needs
/// to wait for it: what it strikes has ended.
class LapsingFault final : public injector::Fault {
 public:
  explicit LapsingFault(std::optional<Duration> lasts) : lasts_(lasts) {}
  Status prepare() override { return okStatus(); }
  Status apply() override {
    applied_ = now();
    return okStatus();
  }
  Status step(TimePoint /*now*/) override { return okStatus(); }
  Status revert() override {
    reverted_ = true;
    return okStatus();
  }
  std::string mechanism() const override { return "none"; }
  std::optional<TimePoint> endedAt() const override { return applied_; }
  std::optional<TimePoint> lapsedAt() const override {
    if (!reverted_ || !lasts_) return std::nullopt;
    return applied_ + *lasts_;
  }

 protected:
  bool conclusive() const override { return true; }
  injector::Evidence verdict() const override { return {"none", "none", "it happened", true}; }

 private:
  std::optional<Duration> lasts_;
  TimePoint applied_{};
  bool reverted_ = false;
};

}  // namespace faultline::testing
