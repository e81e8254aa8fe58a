#include <memory>
#include <nlohmann/json.hpp>

#include "harness/workload/job_kind.h"
#include "harness/workload/pingpong/job/pingpong_job.h"
#include "harness/workload/pingpong/section/values.h"

namespace faultline::workload {
namespace {

constexpr const char* kSize = "size";
constexpr const char* kExchanges = "exchanges";

std::unique_ptr<Job> make(const RankConfig& config) {
  return makePingpongJob(config.workload, config.rank, config.size);
}

void check(const RankConfig& config, const JobKind::Fail& fail) {
  if (config.size % 2 != 0) fail("size", "is odd, and pairs are of two ranks");
}

nlohmann::json write(const scenario::Workload& workload) {
  const scenario::Pingpong& values = scenario::pingpongOf(workload);
  return {{kSize, values.size}, {kExchanges, values.exchanges}};
}

Status read(const nlohmann::json& values, scenario::Workload& workload) {
  const auto whole = [&](const char* key) {
    return values.contains(key) && values[key].is_number_integer() && values[key] > 0;
  };
  if (!values.is_object() || values.size() != 2 || !whole(kSize) || !whole(kExchanges)) {
    return errorf(Code::kInvalidArgument, "has not {} and {} above 0, and nothing else", kSize,
                  kExchanges);
  }
  workload.own = scenario::OwnSection::of(scenario::Pingpong{
      .size = values[kSize].get<Bytes>(), .exchanges = values[kExchanges].get<int>()});
  return okStatus();
}

}  // namespace

extern const JobKind kPingpongJob;
constinit const JobKind kPingpongJob{.make = make, .check = check, .write = write, .read = read};

}  // namespace faultline::workload
