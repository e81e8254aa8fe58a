#pragma once

#include "reports/result.h"

namespace faultline::reports {

/// A JSON Schema (draft 7, which most validators know) of result.json, made from the tables that
/// reader and writer use (result_fields.h). Keys that it does not know are allowed: a newer writer
/// may have added them.
Json resultSchema();

}  // namespace faultline::reports
