#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace faultline::comm {

/// Element types of a collective.
enum class DataType : std::uint8_t { kF32, kF64, kI32, kI64 };

/// How two elements become one.
enum class ReduceOp : std::uint8_t { kSum, kMin, kMax, kProd };

inline constexpr std::array kAllDataTypes{DataType::kF32, DataType::kF64, DataType::kI32,
                                          DataType::kI64};
inline constexpr std::array kAllReduceOps{ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax,
                                          ReduceOp::kProd};

/// Bytes of one element.
std::int64_t sizeOf(DataType type);

/// "f32", "f64", "i32", "i64"; "sum", "min", "max", "prod".
std::string_view nameOf(DataType type);
std::string_view nameOf(ReduceOp op);

/// The reverse of nameOf; nullopt for an unknown name.
std::optional<DataType> dataTypeFromName(std::string_view name);
std::optional<ReduceOp> reduceOpFromName(std::string_view name);

/// accumulator[i] = accumulator[i] (op) operand[i] for 0 <= i < count elements of the type.
///
/// Both arrays are aligned for the type and do not overlap. Integers wrap around in two's
/// complement on overflow. Floats follow IEEE 754 without reassociation, so the same operations in
/// the same order give the same bits. Minimum and maximum of floats: a NaN on either side gives
/// NaN; of two zeros of different sign the accumulator's stays. No allocation, no lock; safe from
/// any thread.
void reduce(DataType type, ReduceOp op, void* accumulator, const void* operand, std::int64_t count);

}  // namespace faultline::comm
