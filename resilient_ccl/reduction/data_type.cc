#include "resilient_ccl/reduction/data_type.h"

namespace faultline::reduction {
namespace {

template <typename Enum, std::size_t n>
std::optional<Enum> fromName(const std::array<std::string_view, n>& names, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::optional<DataType> dataTypeFromName(std::string_view name) {
  return fromName<DataType>(kDataTypeNames, name);
}

std::optional<ReduceOp> reduceOpFromName(std::string_view name) {
  return fromName<ReduceOp>(kReduceOpNames, name);
}

}  // namespace faultline::reduction
