// libFuzzer's entry: cmake --preset fuzz && cmake --build --preset fuzz, then
//   build-fuzz/tests/fuzz_driver_msccl -max_total_time=300 NEW_CORPUS tests/data/fuzz/msccl
#include "tests/fuzz/msccl/msccl_entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  faultline::fuzz::mscclReader(data, size);
  return 0;
}
