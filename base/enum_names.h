#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

namespace faultline {

/// Of an enum with names: `namesOf(value)`, a function beside it, returns a list of these.
template <typename E>
struct EnumName {
  E value;
  const char* name;
};

/// What is written by name: enums, and pointers to rows of a table that have `namesOf` too.
template <typename T>
concept Named = std::is_enum_v<T> ||(std::is_pointer_v<T>&& requires(T value) { namesOf(value); });

/// The list, by a function that has a literal for each.
template <typename E, std::size_t kCount, typename NameOf>
constexpr std::array<EnumName<E>, kCount> enumNames(const std::array<E, kCount>& values,
                                                    const NameOf& nameOf) {
  std::array<EnumName<E>, kCount> names{};
  for (std::size_t i = 0; i < kCount; ++i) names[i] = {values[i], nameOf(values[i]).data()};
  return names;
}

/// The name of a value; "unknown" for one that has none.
template <typename E>
const char* enumName(E value) {
  for (const auto& entry : namesOf(value)) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

}  // namespace faultline
