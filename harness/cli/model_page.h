#pragma once

#include <string>

#include "harness/cli/output.h"
#include "harness/model/device_card.h"
#include "harness/model/model_card.h"

namespace faultline::cli {

/// "2.652 billion parameters, 32 layers": one line for lists.
std::string modelInWords(const model::ModelCard& card);
std::string deviceInWords(const model::DeviceCard& card);

/// A card and what follows from it alone, for people and for programs.
std::string modelText(const model::ModelCard& card);
Json modelJson(const model::ModelCard& card);
std::string deviceText(const model::DeviceCard& card);
Json deviceJson(const model::DeviceCard& card);

}  // namespace faultline::cli
