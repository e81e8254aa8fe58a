#pragma once

namespace faultline {

/// Of an enum with names: `namesOf(value)`, a function beside it, returns a list of these.
template <typename E>
struct EnumName {
  E value;
  const char* name;
};

/// The name of a value; "unknown" for one that has none.
template <typename E>
const char* enumName(E value) {
  for (const auto& entry : namesOf(value)) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

}  // namespace faultline
