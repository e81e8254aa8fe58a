#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace faultline::wire {

/// Bytes of a file, which may be no text.
struct FileBytes {
  std::string data{};

  std::string hex() const;
  /// kInvalidArgument when it is not hexadecimal digits, two for each byte.
  static Result<FileBytes> fromHex(std::string_view text);
};

}  // namespace faultline::wire
