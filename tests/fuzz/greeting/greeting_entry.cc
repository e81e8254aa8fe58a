#include "tests/fuzz/greeting/greeting_entry.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "resilient_ccl/nccl/greeting.h"

namespace faultline::fuzz {
namespace {

template <typename Message>
bool keepsThePromises(const std::string& bytes) {
  const auto message = Message::parse(bytes);
  const bool kept =
      message.ok() ? message->serialize() == bytes : !message.status().message().empty();
  if (!kept) {
    std::fprintf(stderr, "promise broken: %s\n", message.status().toString().c_str());
    std::abort();
  }
  return message.ok();
}

}  // namespace

bool greetingReader(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const bool greeting = keepsThePromises<nccl::Greeting>(bytes);
  const bool answer = keepsThePromises<nccl::Answer>(bytes);
  return greeting || answer;
}

}  // namespace faultline::fuzz
