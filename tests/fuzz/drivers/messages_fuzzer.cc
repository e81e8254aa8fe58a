// libFuzzer's entry: cmake --preset fuzz && cmake --build --preset fuzz, then
//   build-fuzz/tests/fuzz_driver_messages -max_total_time=300 NEW_CORPUS
#include "tests/fuzz/messages/messages_entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  faultline::fuzz::messageReader(data, size);
  return 0;
}
