#pragma once

#include <cstdint>

#include "resilient_ccl/reduction/data_type.h"

namespace faultline::reduction {

/// One step of a reduction: target[i] = (left[i] (op) right[i]) / divisor for 0 <= i < count.
///
/// `left` may be `target`; other overlaps are not allowed. All are aligned for their types.
/// Integers wrap around in two's complement. Floats follow IEEE 754, to nearest, without
/// reassociation: the same steps in the same order give the same bits, on every instruction set
/// (which of two NaNs of 32 or 64 bits is kept is the processor's choice). 16-bit floats are
/// widened, reduced in 32 bits and rounded once; their NaNs become one (half.h). Minimum and
/// maximum of floats: a NaN on either side gives NaN; of two zeros of different sign the left one
/// stays.
struct Reduction {
  DataType type = DataType::kF32;
  ReduceOp op = ReduceOp::kSum;
  void* target = nullptr;
  const void* left = nullptr;
  const void* right = nullptr;
  std::int64_t count = 0;  ///< elements
  /// 16-bit floats only: `left` and `target` are f32, a sum that is not rounded yet.
  bool leftIsWide = false;
  bool targetIsWide = false;
  /// kAvg only: the number of ranks in the step that brings the last contribution, else 1.
  int divisor = 1;
};

/// Carries out the step with the best instructions of this machine. No allocation, no lock; safe
/// from any thread.
void reduce(const Reduction& reduction);

/// accumulator[i] = accumulator[i] (op) operand[i], without a division.
void reduce(DataType type, ReduceOp op, void* accumulator, const void* operand, std::int64_t count);

/// What the loops are compiled for. All give the same bits.
enum class InstructionSet : std::uint8_t { kBaseline, kAvx2, kAvx512 };

/// Whether this machine has it.
bool isSupported(InstructionSet set);

/// As above, with the instructions of a supported set.
void reduce(const Reduction& reduction, InstructionSet set);

}  // namespace faultline::reduction
