#pragma once

#include <cstdint>

#include "resilient_ccl/reduction/data_type.h"

namespace faultline::reduction {

/// A loop over arrays whose types are known: `Reduction` without its types.
using Kernel = void (*)(void* target, const void* left, const void* right, std::int64_t count,
                        int divisor);

/// Which loop is meant.
struct KernelKey {
  DataType type;
  ReduceOp op;
  bool leftIsWide;
  bool targetIsWide;
  bool divides;
};

/// One per instruction set; null where the compiler has no such set.
Kernel baselineKernel(const KernelKey& key);
Kernel avx2Kernel(const KernelKey& key);
Kernel avx512Kernel(const KernelKey& key);

}  // namespace faultline::reduction
