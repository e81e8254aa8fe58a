// libFuzzer's entry: cmake --preset fuzz && cmake --build --preset fuzz, then
//   build-fuzz/tests/fuzz_driver_inputs -max_total_time=300 NEW_CORPUS tests/data/fuzz/inputs
#include "tests/fuzz/inputs/inputs_entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  faultline::fuzz::inputReaders(data, size);
  return 0;
}
