#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/number_range.h"

namespace faultline::site {

/// Calls `change(TimePoint&)` for each moment in a message, wherever in it, by its tables of fields
/// (base/json_fields.h). Durations are not moments.
template <typename Change>
class MomentVisitor {
 public:
  explicit MomentVisitor(Change& change) : change_(change) {}

  void visit(TimePoint& moment) { change_(moment); }
  template <typename T>
  void visit(T& value) {
    if constexpr (requires { visitFields(*this, value); }) visitFields(*this, value);
  }
  template <typename T>
  void visit(std::optional<T>& value) {
    if (value) visit(*value);
  }
  template <typename T>
  void visit(std::vector<T>& values) {
    if constexpr (!std::is_arithmetic_v<T>) {
      for (T& value : values) visit(value);
    }
  }
  template <typename T>
  void visit(std::map<std::string, T>& values) {
    for (auto& [key, value] : values) visit(value);
  }
  template <typename... Ts>
  void visit(std::variant<Ts...>& value) {
    std::visit([this](auto& one) { this->visit(one); }, value);
  }

  template <typename T>
  void required(const char* /*key*/, T& value, const NumberRange& /*range*/ = {}) {
    visit(value);
  }
  template <typename T>
  void field(const char* /*key*/, T& value) {
    visit(value);
  }

 private:
  Change& change_;
};

template <typename Message, typename Change>
void eachMoment(Message& message, Change change) {
  MomentVisitor<Change>(change).visit(message);
}

}  // namespace faultline::site
