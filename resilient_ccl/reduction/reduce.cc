#include "resilient_ccl/reduction/reduce.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cassert>

#include "resilient_ccl/reduction/kernel.h"

namespace faultline::reduction {
namespace {

Kernel kernelFor(const KernelKey& key, InstructionSet set) {
  switch (set) {
    case InstructionSet::kBaseline:
      break;
    case InstructionSet::kAvx2:
      return avx2Kernel(key);
    case InstructionSet::kAvx512:
      return avx512Kernel(key);
  }
  return baselineKernel(key);
}

#if defined(__x86_64__)
// F16C, by which name __builtin_cpu_supports does not know it in every compiler.
bool convertsHalves() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

InstructionSet bestOfThisMachine() {
  for (const InstructionSet set : {InstructionSet::kAvx512, InstructionSet::kAvx2}) {
    if (isSupported(set)) return set;
  }
  return InstructionSet::kBaseline;
}

}  // namespace

bool isSupported(InstructionSet set) {
  if (kernelFor({}, set) == nullptr) return false;
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx2) {
    return __builtin_cpu_supports("avx2") && convertsHalves();
  }
  if (set == InstructionSet::kAvx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return set == InstructionSet::kBaseline;
}

void reduce(const Reduction& reduction, InstructionSet set) {
  assert(isHalf(reduction.type) || !(reduction.leftIsWide || reduction.targetIsWide));
  assert(reduction.divisor == 1 || reduction.op == ReduceOp::kAvg);
  const Kernel kernel = kernelFor({.type = reduction.type,
                                   .op = reduction.op,
                                   .leftIsWide = reduction.leftIsWide,
                                   .targetIsWide = reduction.targetIsWide,
                                   .divides = reduction.divisor != 1},
                                  set);
  kernel(reduction.target, reduction.left, reduction.right, reduction.count, reduction.divisor);
}

void reduce(const Reduction& reduction) {
  static const InstructionSet best = bestOfThisMachine();
  reduce(reduction, best);
}

void reduce(DataType type, ReduceOp op, void* accumulator, const void* operand,
            std::int64_t count) {
  reduce({.type = type,
          .op = op,
          .target = accumulator,
          .left = accumulator,
          .right = operand,
          .count = count});
}

}  // namespace faultline::reduction
