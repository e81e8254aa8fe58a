#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json_depth.h"
#include "base/status.h"

namespace faultline {

/// A document from JSON text of any origin: a file, a program, a peer. kInvalidArgument, with the
/// place, for what is no JSON or is nested too deep. Never throws.
template <typename Json = nlohmann::json>
Result<Json> parseJson(std::string_view text) {
  RETURN_IF_ERROR(checkJsonDepth(text));
  try {
    return Json::parse(text);
  } catch (const typename Json::exception& error) {
    return errorf(Code::kInvalidArgument, "it is not JSON: {}", error.what());
  }
}

}  // namespace faultline
