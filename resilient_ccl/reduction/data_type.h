#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace faultline::reduction {

/// Element types of a collective: IEEE 754 binary16, bfloat16, binary32, binary64, and integers in
/// two's complement.
enum class DataType : std::uint8_t { kF16, kBf16, kF32, kF64, kI8, kU8, kI32, kU32, kI64, kU64 };

/// How contributions become one result. All are commutative; what is not has no place here, because
/// a schedule adds in an order of its own.
enum class ReduceOp : std::uint8_t {
  kSum,
  kProd,
  kMin,
  kMax,
  kAvg,  ///< the sum, divided once by the number of ranks; integers towards zero
};

inline constexpr std::array kAllDataTypes{
    DataType::kF16, DataType::kBf16, DataType::kF32, DataType::kF64, DataType::kI8,
    DataType::kU8,  DataType::kI32,  DataType::kU32, DataType::kI64, DataType::kU64};
inline constexpr std::array kAllReduceOps{ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin,
                                          ReduceOp::kMax, ReduceOp::kAvg};

/// By the number of the type, the operation. The one list of names: scenarios read it too.
inline constexpr std::array<std::string_view, kAllDataTypes.size()> kDataTypeNames{
    "f16", "bf16", "f32", "f64", "i8", "u8", "i32", "u32", "i64", "u64"};
inline constexpr std::array<std::string_view, kAllReduceOps.size()> kReduceOpNames{
    "sum", "prod", "min", "max", "avg"};

/// Whether it is one of the above: callers may have made it from any number.
constexpr bool isKnown(DataType type) {
  return static_cast<std::size_t>(type) < kAllDataTypes.size();
}
constexpr bool isKnown(ReduceOp op) { return static_cast<std::size_t>(op) < kAllReduceOps.size(); }

/// Bytes of one element. Of a type that is known.
constexpr std::int64_t sizeOf(DataType type) {
  constexpr std::array<std::int64_t, kAllDataTypes.size()> kSizes{2, 2, 4, 8, 1, 1, 4, 4, 8, 8};
  return kSizes[static_cast<std::size_t>(type)];
}

/// Whether arithmetic is done in 32 bits and the result rounded to 16.
constexpr bool isHalf(DataType type) { return type == DataType::kF16 || type == DataType::kBf16; }

constexpr std::string_view nameOf(DataType type) {
  return kDataTypeNames[static_cast<std::size_t>(type)];
}
constexpr std::string_view nameOf(ReduceOp op) {
  return kReduceOpNames[static_cast<std::size_t>(op)];
}

/// The reverse of nameOf; nullopt for an unknown name.
std::optional<DataType> dataTypeFromName(std::string_view name);
std::optional<ReduceOp> reduceOpFromName(std::string_view name);

}  // namespace faultline::reduction
