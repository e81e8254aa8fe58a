#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace faultline::injector::verbs {

/// One packet between the controller and the shim: a word and fields, as lines of text:
///
///     faultline-verbs 4 arm
///     effect=post_error
///     error=12
///
/// Keys are small letters and '_', values printable ASCII. A key comes once, except "qp", and there
/// are few of them. Whatever is not exactly so is refused.
class Message {
 public:
  static constexpr int kVersion = 4;
  static constexpr std::size_t kMostBytes = 32'768;
  /// Distinct keys: each is looked for among those before it. No message has half as many.
  static constexpr std::size_t kMostKeys = 64;

  explicit Message(std::string verb) : verb_(std::move(verb)) {}

  /// kInvalidArgument for anything that is no message of this version.
  static Result<Message> parse(std::string_view packet);
  std::string serialize() const;

  const std::string& verb() const { return verb_; }
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }

  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, std::uint64_t value) { add(key, std::to_string(value)); }

  std::optional<std::string_view> find(std::string_view key) const;
  /// Number in decimal; kInvalidArgument when it is missing, is none or exceeds `most`.
  Result<std::uint64_t> number(std::string_view key, std::uint64_t most = UINT64_MAX) const;

 private:
  std::string verb_;
  std::vector<std::pair<std::string, std::string>> fields_;
};

}  // namespace faultline::injector::verbs
