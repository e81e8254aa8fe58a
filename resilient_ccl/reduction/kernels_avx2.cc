#if defined(__AVX2__)
#include "resilient_ccl/reduction/kernels.h"
#else
#include "resilient_ccl/reduction/kernel.h"
#endif

namespace faultline::reduction {

#if defined(__AVX2__)
Kernel avx2Kernel(const KernelKey& key) { return kernelOf(key); }
#else
Kernel avx2Kernel(const KernelKey&) { return nullptr; }
#endif

}  // namespace faultline::reduction
