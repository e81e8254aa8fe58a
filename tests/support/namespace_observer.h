#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/netlink/socket.h"

namespace faultline::test {

/// Sees whether network namespaces are really gone. A namespace without a name that is kept alive
/// by an orphaned socket is in no list of the system; but the far end of a veth pair, put into a
/// namespace of the observer's, vanishes exactly when the namespace of the near end dies.
class NamespaceObserver {
 public:
  static Result<NamespaceObserver> make();

  /// Puts a veth end into the namespace. Does not keep the namespace alive.
  Status watch(int namespace_fd);

  int watched() const { return watched_; }
  /// How many of the watched namespaces are still there.
  Result<int> alive();

 private:
  NamespaceObserver(UniqueFd fd, netlink::Socket socket)
      : namespace_(std::move(fd)), socket_(std::move(socket)) {}
  UniqueFd namespace_;
  netlink::Socket socket_;
  int watched_ = 0;
};

}  // namespace faultline::test
