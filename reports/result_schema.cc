#include "reports/result_schema.h"

#include "base/json_schema.h"
#include "reports/result_fields.h"

namespace faultline::reports {

Json resultSchema() {
  Json schema{
      {"$schema", "http://json-schema.org/draft-07/schema#"},
      {"title", "result.json of faultline"},
      {"description",
       "What one `faultline run` found out. Times are milliseconds from the start of their "
       "run, bytes are bytes; null: did not happen, or too few samples to say. docs/report.md "
       "explains it, reports/result.h each key."}};
  schema.update(JsonSchemaOf<Json>::of(ScenarioResult{}));
  Json properties{{"schema", {{"const", kResultSchema}}}};
  properties.update(schema["properties"]);
  schema["properties"] = std::move(properties);
  // The keys that scripts may use are always there (the contract of the output directory).
  schema["required"] = {"schema",  "scenario", "seed",    "environment",
                        "verdict", "runs",     "summary", "expectations"};
  return schema;
}

}  // namespace faultline::reports
