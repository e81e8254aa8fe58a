#pragma once

#include <array>

namespace faultline {

/// Keeps the descriptors 0, 1 and 2 from being given to sockets and files of ours: what anybody
/// prints would go there. Those that are closed lead to /dev/null while it exists.
class StandardDescriptors {
 public:
  StandardDescriptors();
  ~StandardDescriptors();
  StandardDescriptors(const StandardDescriptors&) = delete;
  StandardDescriptors& operator=(const StandardDescriptors&) = delete;

 private:
  std::array<bool, 3> filled_{};
};

}  // namespace faultline
