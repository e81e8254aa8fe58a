#include "resilient_ccl/comm/reduce.h"

#include <type_traits>

namespace faultline::comm {
namespace {

constexpr std::array<std::string_view, kAllDataTypes.size()> kDataTypeNames{"f32", "f64", "i32",
                                                                            "i64"};
constexpr std::array<std::string_view, kAllReduceOps.size()> kReduceOpNames{"sum", "min", "max",
                                                                            "prod"};

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
};

struct Prod {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
    } else {
      return a * b;
    }
  }
};

// `b != b` is true for NaN only; `|` instead of `||` leaves no branch, so that the loop vectorises.

struct Min {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) return b < a ? b : a;
    return static_cast<int>(b < a) | static_cast<int>(b != b) ? b : a;
  }
};

struct Max {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) return b > a ? b : a;
    return static_cast<int>(b > a) | static_cast<int>(b != b) ? b : a;
  }
};

template <typename T, typename Operation>
void loop(T* __restrict accumulator, const T* __restrict operand, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    accumulator[i] = Operation::template apply<T>(accumulator[i], operand[i]);
  }
}

template <typename T>
void reduceTyped(ReduceOp op, void* accumulator, const void* operand, std::int64_t count) {
  auto* a = static_cast<T*>(accumulator);
  const auto* b = static_cast<const T*>(operand);
  switch (op) {
    case ReduceOp::kSum:
      return loop<T, Sum>(a, b, count);
    case ReduceOp::kMin:
      return loop<T, Min>(a, b, count);
    case ReduceOp::kMax:
      return loop<T, Max>(a, b, count);
    case ReduceOp::kProd:
      return loop<T, Prod>(a, b, count);
  }
}

template <typename Enum, std::size_t n>
std::optional<Enum> fromName(const std::array<std::string_view, n>& names, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::int64_t sizeOf(DataType type) {
  return type == DataType::kF32 || type == DataType::kI32 ? 4 : 8;
}

std::string_view nameOf(DataType type) { return kDataTypeNames[static_cast<std::size_t>(type)]; }

std::string_view nameOf(ReduceOp op) { return kReduceOpNames[static_cast<std::size_t>(op)]; }

std::optional<DataType> dataTypeFromName(std::string_view name) {
  return fromName<DataType>(kDataTypeNames, name);
}

std::optional<ReduceOp> reduceOpFromName(std::string_view name) {
  return fromName<ReduceOp>(kReduceOpNames, name);
}

void reduce(DataType type, ReduceOp op, void* accumulator, const void* operand,
            std::int64_t count) {
  switch (type) {
    case DataType::kF32:
      return reduceTyped<float>(op, accumulator, operand, count);
    case DataType::kF64:
      return reduceTyped<double>(op, accumulator, operand, count);
    case DataType::kI32:
      return reduceTyped<std::int32_t>(op, accumulator, operand, count);
    case DataType::kI64:
      return reduceTyped<std::int64_t>(op, accumulator, operand, count);
  }
}

}  // namespace faultline::comm
