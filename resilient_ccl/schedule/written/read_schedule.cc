#include "resilient_ccl/schedule/written/read_schedule.h"

#include <cstddef>
#include <utility>

#include "base/random.h"
#include "resilient_ccl/schedule/msccl/importer.h"
#include "resilient_ccl/schedule/msccl/xml.h"
#include "resilient_ccl/schedule/written/schedule_json.h"

namespace faultline::schedule {
namespace {

std::uint64_t digestOf(std::string_view text) {
  std::uint64_t hash = Random::mix(text.size() + 1);
  for (const char c : text) hash = Random::mix(hash + static_cast<unsigned char>(c) + 1);
  return hash;
}

class FromXml final : public ScheduleSource {
 public:
  FromXml(msccl::Algo algo, std::uint64_t digest) : algo_(std::move(algo)), digest_(digest) {}

  std::string_view algorithm() const override { return algo_.name; }
  Collective collective() const override { return algo_.collective; }
  int root() const override { return 0; }
  int ranks() const override { return static_cast<int>(algo_.gpus.size()); }
  std::int64_t chunks() const override { return algo_.chunks; }
  std::uint64_t digest() const override { return digest_; }
  Result<std::unique_ptr<Schedule>> make(std::int64_t dataElements) const override {
    return msccl::importSchedule(algo_, dataElements);
  }

 private:
  msccl::Algo algo_;
  std::uint64_t digest_;
};

class FromJson final : public ScheduleSource {
 public:
  FromJson(JsonSchedule schedule, std::uint64_t digest)
      : schedule_(std::move(schedule)), digest_(digest) {}

  std::string_view algorithm() const override { return schedule_.inChunks->algorithm(); }
  Collective collective() const override { return schedule_.inChunks->collective(); }
  int root() const override { return schedule_.inChunks->root(); }
  int ranks() const override { return schedule_.inChunks->ranks(); }
  std::int64_t chunks() const override { return schedule_.chunks; }
  std::uint64_t digest() const override { return digest_; }
  Result<std::unique_ptr<Schedule>> make(std::int64_t dataElements) const override {
    if (dataElements < 0) {
      return errorf(Code::kInvalidArgument, "a schedule cannot move {} elements", dataElements);
    }
    return scaled(schedule_, dataElements);
  }

 private:
  JsonSchedule schedule_;
  std::uint64_t digest_;
};

}  // namespace

Result<std::shared_ptr<const ScheduleSource>> readSchedule(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const char kind = first == std::string_view::npos ? '\0' : text[first];
  if (kind == '<') {
    ASSIGN_OR_RETURN(msccl::Algo algo, msccl::fromXml(text));
    return std::shared_ptr<const ScheduleSource>(
        std::make_shared<FromXml>(std::move(algo), digestOf(text)));
  }
  if (kind == '{') {
    ASSIGN_OR_RETURN(JsonSchedule schedule, scheduleFromJson(text));
    return std::shared_ptr<const ScheduleSource>(
        std::make_shared<FromJson>(std::move(schedule), digestOf(text)));
  }
  return errorf(Code::kInvalidArgument,
                "is neither MSCCL XML, which begins with '<', nor a schedule in JSON, which begins "
                "with '{{': 'faultline schedule show' writes both");
}

}  // namespace faultline::schedule
