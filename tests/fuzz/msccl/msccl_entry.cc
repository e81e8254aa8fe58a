#include "tests/fuzz/msccl/msccl_entry.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "resilient_ccl/schedule/msccl/importer.h"
#include "resilient_ccl/schedule/msccl/xml.h"
#include "resilient_ccl/schedule/verifier.h"
#include "resilient_ccl/schedule/written/read_schedule.h"

namespace faultline::fuzz {
namespace {

[[noreturn]] void broken(const char* promise, const std::string& detail) {
  std::fprintf(stderr, "promise broken: %s\n%s\n", promise, detail.c_str());
  std::abort();
}

}  // namespace

namespace {

/// Schedules in JSON, beside those in XML.
bool jsonReader(const std::string& text) {
  const auto source = schedule::readSchedule(text);
  if (!source.ok()) {
    if (source.status().message().empty()) broken("an error says something", text);
    return false;
  }
  const auto made = (*source)->make((*source)->chunks());
  if (!made.ok()) broken("what is read is a schedule", made.status().toString());
  const auto report = schedule::verifySchedule(**made);
  if (!report.ok() && report.status().code() != Code::kUnsupported) {
    broken("the verifier can judge it", report.status().toString());
  }
  return true;
}

}  // namespace

bool mscclReader(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{')) return jsonReader(text);
  const auto algo = schedule::msccl::fromXml(text);
  if (!algo.ok()) {
    if (algo.status().message().empty()) broken("an error says something", text);
    return false;
  }
  const auto written = schedule::msccl::toXml(*algo);
  const auto again = schedule::msccl::fromXml(*written);
  if (!again.ok()) broken("what is written is read again", again.status().toString());
  if (*schedule::msccl::toXml(*again) != *written) broken("and is the same", *written);
  constexpr std::int64_t kElements = 1000;
  const auto imported = schedule::msccl::importSchedule(*algo, kElements);
  if (!imported.ok()) return false;
  const auto report = schedule::verifySchedule(**imported);
  if (!report.ok() && report.status().code() != Code::kUnsupported) {
    broken("the verifier can judge it", report.status().toString());
  }
  return true;
}

}  // namespace faultline::fuzz
