#include "harness/workload/collective/section/json.h"

#include "harness/scenario/json.h"
#include "harness/scenario/workload_json.h"

namespace faultline::scenario {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json sweepJson(const Workload& workload) {
  Json json = iterationsJson(workload);
  const Sweep& sweep = workload.collective;
  Json& keys = json["collective"] = Json::object();
  for (const auto operation : sweep.operations) {
    keys["operations"].push_back(schedule::collectiveName(operation));
  }
  for (const Bytes size : sweep.sizes) keys["sizes"].push_back(formatSize(size));
  for (const DataType dtype : sweep.dtypes) keys["dtypes"].push_back(name(dtype));
  for (const auto op : sweep.ops) keys["ops"].push_back(reduction::nameOf(op));
  keys["place"] = name(sweep.place);
  keys["settle_calls"] = sweep.settleCalls;
  return json;
}

}  // namespace faultline::scenario
