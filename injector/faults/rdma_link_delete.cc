#include "injector/faults/rdma_link_delete.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>

#include "base/unique_fd.h"
#include "injector/faults/fault_list.h"
#include "injector/faults/usual_rows.h"

namespace faultline::injector {
namespace {

constexpr std::array<std::string_view, 2> kRdmaUsers{"refuse", "leave"};
constexpr std::array kRdmaLinkDeleteParameters{
    ParameterSpec{"users", ParameterType::kEnum, "refuse",
                  "what if programs have the device open. refuse: nothing is done. leave: it goes "
                  "for everybody else; they keep what they have, the kernel ends the deletion when "
                  "they have closed it, and only then can it be undone",
                  kRdmaUsers},
};

}  // namespace

constinit const FaultKind kRdmaLinkDeleteKind{
    .name = "rdma_link_delete",
    .summary =
        "An RDMA device in software (rxe, siw) is deleted, and made again when the "
        "fault ends.",
    .sees =
        "programs that look for the device do not find it; what those see that have it "
        "open depends on its driver: of rxe in Linux 6.1 nothing",
    .evidence = "the kernel no longer lists it, and its character device cannot be opened",
    .undo = "a device with the same name and type is added over the same interface",
    .parameters = kRdmaLinkDeleteParameters,
    .cutsLink = true,
    .target = TargetKind::kRdma,
    .unproven = "on siw, which the kernels at hand do not have (proven on rxe)",
    .makeForDevice = makeOne<RdmaLinkDelete>};

namespace {

// The kernel waits for readers of its lists (RCU) a few times.
constexpr Duration kDeletionBudget = 5s;
constexpr int kPauseMilliseconds = 2;

}  // namespace

RdmaLinkDelete::RdmaLinkDelete(const FaultParameters& parameters, const rdma::RdmaTarget& target)
    : target_(target), leave_users_(parameters.get<std::string>("users") == "leave") {}

RdmaLinkDelete::~RdmaLinkDelete() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("rdma_link_delete: {}", status.message());
}

Status RdmaLinkDelete::prepare() {
  ASSIGN_OR_RETURN(rdma::TargetDevice device, rdma::TargetDevice::open(target_));
  RETURN_IF_ERROR(requireDeletable(device.identity()));
  RETURN_IF_ERROR(device.readNetdev().status());
  RETURN_IF_ERROR(device.requireActive());
  device_.emplace(std::move(device));
  return requireNoHolders();
}

std::string RdmaLinkDelete::holdersInWords() const {
  if (holders_.pids.empty()) {
    return "a program of another process namespace, such as a container,";
  }
  return fmt::format("{} {}", holders_.pids.size() == 1 ? "process" : "processes",
                     fmt::join(holders_.pids, ", "));
}

Status RdmaLinkDelete::requireNoHolders() {
  ASSIGN_OR_RETURN(holders_, rdma::readHolders(device_->rdma(), device_->device().index));
  if (leave_users_ || holders_.contexts == 0) return okStatus();
  return errorf(Code::kUnavailable,
                "rdma_link_delete: {} has {} open, which rxe cannot take away from it: the kernel "
                "would wait until it is closed. End what uses it, or say 'users: leave'; to strike "
                "those that run use rdma_port_down or rdma_silent_drop",
                holdersInWords(), target_.device);
}

Result<bool> RdmaLinkDelete::isListed() {
  ASSIGN_OR_RETURN(const auto devices, rdma::listDevices(device_->rdma()));
  return std::ranges::any_of(devices, [&](const rdma::Device& device) {
    return device.index == device_->device().index && device.name == device_->device().name;
  });
}

Status RdmaLinkDelete::apply() {
  listed_ = true;
  open_error_ = 0;
  RETURN_IF_ERROR(device_->findAgain());
  RETURN_IF_ERROR(requireNoHolders());  // some may have come since
  applied_ = true;
  return transit(true, [&] { return removeDevice(); });
}

Status RdmaLinkDelete::removeDevice() {
  ASSIGN_OR_RETURN(rdma::LinkDeletion deletion, rdma::LinkDeletion::start(device_->device()));
  deletion_.emplace(std::move(deletion));
  return rdma::awaitDeletion(
      target_.device, [&] { return deletion_->poll(); }, [&] { return isListed(); },
      kDeletionBudget);
}

Status RdmaLinkDelete::step(TimePoint /*now*/) {
  if (conclusive()) return okStatus();
  ASSIGN_OR_RETURN(listed_, isListed());
  const std::string path = "/dev/infiniband/" + device_->character().name;
  const UniqueFd opened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  open_error_ = opened ? 0 : errno;
  return okStatus();
}

Evidence RdmaLinkDelete::verdict() const {
  std::string observed = fmt::format(
      "the kernel {} {}; to open /dev/infiniband/{} gives: {}",
      listed_ ? "still lists" : "does not list", target_.device, device_->character().name,
      open_error_ == 0 ? "a device" : std::generic_category().message(open_error_));
  if (holders_.contexts > 0) {
    observed += fmt::format("; {} had it open and keeps what it has", holdersInWords());
  }
  return {"rdma_link_delete", "the device is not to be found", std::move(observed), conclusive()};
}

Status RdmaLinkDelete::revert() {
  if (!applied_) return okStatus();
  const rdma::Port& port = device_->portAtFirst();
  const std::string_view type = linkType(device_->identity().device_class);
  const TimePoint deadline = now() + kDeletionBudget;
  while (deletion_ && !deletion_->poll()) {
    if (now() >= deadline) {
      return errorf(
          Code::kNotRestored,
          "{} cannot be made again yet: {} still has the old device open. When it has ended: "
          "rdma link add {} type {} netdev {}",
          target_.device, holdersInWords(), target_.device, type, port.netdev);
    }
    ::poll(nullptr, 0, kPauseMilliseconds);
  }
  ASSIGN_OR_RETURN(const bool listed, isListed());
  if (!listed) {
    RETURN_IF_ERROR(transit(false, [&] {
      return rdma::createLink(device_->rdma(), target_.device, type, port.netdev);
    }));
  }
  // The same name has another index now; what comes next acts on the new device.
  ASSIGN_OR_RETURN(rdma::TargetDevice made, rdma::TargetDevice::open(target_));
  RETURN_IF_ERROR(made.awaitActive());
  if (made.portAtFirst().netdev != port.netdev || linkType(made.identity().device_class) != type) {
    return errorf(Code::kNotRestored, "{} is back as {} over {}, and was {} over {}",
                  target_.device, toString(made.identity().device_class), made.portAtFirst().netdev,
                  toString(device_->identity().device_class), port.netdev);
  }
  device_.emplace(std::move(made));
  deletion_.reset();
  applied_ = false;
  return okStatus();
}

}  // namespace faultline::injector
