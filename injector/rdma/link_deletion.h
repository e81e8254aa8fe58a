#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "injector/rdma/nldev_messages.h"

namespace faultline::rdma {

/// A request to delete a device that a process of its own has sent. The kernel answers when the
/// device is gone; where programs have it open and its driver cannot take it away from them, that
/// is when the last of them has closed it, and until then whoever asked can neither be interrupted
/// nor killed. That shall not be us. The process holds nothing of ours, and ends by itself.
class LinkDeletion {
 public:
  static Result<LinkDeletion> start(const Device& device);
  LinkDeletion(LinkDeletion&& other) noexcept;
  LinkDeletion& operator=(LinkDeletion&&) = delete;
  ~LinkDeletion();

  /// Nothing while the kernel has not answered; then its answer.
  std::optional<Status> poll();

 private:
  LinkDeletion(pid_t pid, std::string device) : pid_(pid), device_(std::move(device)) {}
  pid_t pid_;
  std::string device_;
  std::optional<Status> answer_;
};

/// Waits until a device is gone for all that look for it (`listed`), whether or not the kernel has
/// answered. An error when the kernel answers with one, or when the device is there after `budget`.
Status awaitDeletion(std::string_view device, const std::function<std::optional<Status>()>& answer,
                     const std::function<Result<bool>()>& listed, Duration budget);

}  // namespace faultline::rdma
