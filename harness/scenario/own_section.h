#pragma once

#include <memory>
#include <utility>

namespace faultline::scenario {

/// Values of a section that only its workload's folder knows: of any type that can be compared.
/// They do not change once they are read; copies share them.
class OwnSection {
 public:
  OwnSection() = default;

  template <typename Values>
  static OwnSection of(Values values) {
    OwnSection section;
    section.held_ = std::make_shared<const Held<Values>>(std::move(values));
    return section;
  }

  /// Null where there are none, or of another type.
  template <typename Values>
  const Values* as() const {
    const auto* const held = dynamic_cast<const Held<Values>*>(held_.get());
    return held == nullptr ? nullptr : &held->values;
  }

  bool operator==(const OwnSection& other) const {
    if (held_ == nullptr || other.held_ == nullptr) return held_ == other.held_;
    return held_->equals(*other.held_);
  }

 private:
  struct Any {
    virtual ~Any() = default;
    virtual bool equals(const Any& other) const = 0;
  };
  template <typename Values>
  struct Held final : Any {
    explicit Held(Values held) : values(std::move(held)) {}
    bool equals(const Any& other) const override {
      const auto* const same = dynamic_cast<const Held*>(&other);
      return same != nullptr && same->values == values;
    }
    const Values values;
  };

  std::shared_ptr<const Any> held_;
};

}  // namespace faultline::scenario
