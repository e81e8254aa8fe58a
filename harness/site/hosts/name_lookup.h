#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace faultline::hosts {

/// Asks for the IPv4 addresses of names, as this machine resolves them, in threads: to resolve one
/// may take many seconds, and cannot be ended. What is still asked for when this object goes is
/// heard by nobody.
class NameLookup {
 public:
  explicit NameLookup(std::vector<std::string> names);

  /// Empty: the name is not known, or has no such address. Nothing: no answer has come yet.
  std::optional<std::vector<std::string>> answer(std::size_t name) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace faultline::hosts
