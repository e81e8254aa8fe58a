#include "resilient_ccl/reduction/kernels.h"

namespace faultline::reduction {

Kernel baselineKernel(const KernelKey& key) { return kernelOf(key); }

}  // namespace faultline::reduction
