#if defined(__AVX512F__)
#include "resilient_ccl/reduction/kernels.h"
#else
#include "resilient_ccl/reduction/kernel.h"
#endif

namespace faultline::reduction {

#if defined(__AVX512F__)
Kernel avx512Kernel(const KernelKey& key) { return kernelOf(key); }
#else
Kernel avx512Kernel(const KernelKey&) { return nullptr; }
#endif

}  // namespace faultline::reduction
