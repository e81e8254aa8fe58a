#include <memory>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_schema.h"
#include "harness/workload/job_kind.h"
#include "harness/workload/pingpong/job/pingpong_job.h"
#include "harness/workload/pingpong/section/values.h"

namespace faultline::scenario {

template <typename V>
void visitFields(V& v, Of<Pingpong> auto& values) {
  v.required("size", values.size, NumberRange{.least = 1, .most = Pingpong::kMostBytes});
  v.required("exchanges", values.exchanges,
             NumberRange{.least = 1, .most = Pingpong::kMostExchanges});
}

}  // namespace faultline::scenario

namespace faultline::workload {
namespace {

std::unique_ptr<Job> make(const RankConfig& config) {
  return makePingpongJob(config.workload, config.rank, config.size);
}

void check(const RankConfig& config, const JobKind::Fail& fail) {
  if (config.size % 2 != 0) fail("size", "is odd, and pairs are of two ranks");
}

nlohmann::json write(const scenario::Workload& workload) {
  return JsonWriter<nlohmann::json>::write(scenario::pingpongOf(workload));
}

Status read(const nlohmann::json& values, scenario::Workload& workload) {
  scenario::Pingpong read;
  RETURN_IF_ERROR(
      (JsonReader<nlohmann::json, Strictness::kExact>::read(values, JobKind::kOwnPath, read)));
  workload.own = scenario::OwnSection::of(read);
  return okStatus();
}

nlohmann::ordered_json schema() {
  return JsonSchemaOf<nlohmann::ordered_json, Strictness::kExact>::of(scenario::Pingpong{});
}

}  // namespace

extern const JobKind kPingpongJob;
constinit const JobKind kPingpongJob{
    .make = make, .check = check, .write = write, .read = read, .schema = schema};

}  // namespace faultline::workload
