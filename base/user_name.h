#pragma once

#include <string>

namespace faultline {

/// Who runs this program, by name, or by number where there is none. Of who has called sudo: root
/// is everybody.
std::string userName();

}  // namespace faultline
