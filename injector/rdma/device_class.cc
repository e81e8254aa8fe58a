#include "injector/rdma/device_class.h"

#include <rdma/ib_user_ioctl_verbs.h>

namespace faultline::rdma {

DeviceClass classify(std::uint32_t driver_id, std::string_view protocol) {
  if (driver_id == RDMA_DRIVER_RXE) return DeviceClass::kRxe;
  if (driver_id == RDMA_DRIVER_SIW) return DeviceClass::kSiw;
  if (protocol == "ib" || protocol == "opa") return DeviceClass::kInfiniband;
  return driver_id == RDMA_DRIVER_MLX5 ? DeviceClass::kMlx5Roce : DeviceClass::kOtherEthernet;
}

std::string_view toString(DeviceClass device_class) {
  switch (device_class) {
    case DeviceClass::kRxe:
      return "rxe (RoCE in software)";
    case DeviceClass::kSiw:
      return "siw (iWARP in software)";
    case DeviceClass::kMlx5Roce:
      return "an mlx5 adapter with RoCE";
    case DeviceClass::kInfiniband:
      return "InfiniBand";
    case DeviceClass::kOtherEthernet:
      break;
  }
  return "an RDMA adapter on Ethernet";
}

bool isSoftware(DeviceClass device_class) {
  return device_class == DeviceClass::kRxe || device_class == DeviceClass::kSiw;
}

std::string_view linkType(DeviceClass device_class) {
  if (device_class == DeviceClass::kRxe) return "rxe";
  return device_class == DeviceClass::kSiw ? "siw" : "";
}

Status requireTrafficControl(const DeviceIdentity& device, std::string_view attempt) {
  if (isSoftware(device.device_class)) return okStatus();
  return errorf(
      Code::kUnsupported,
      "{} of {}: it is {}, whose packets never pass through the kernel's traffic control: "
      "netem, tbf, htb, filters, nftables and XDP on its network interface change nothing "
      "of RDMA",
      attempt, device.name, toString(device.device_class));
}

Result<DropMechanism> dropMechanism(const DeviceIdentity& device, bool only_roce) {
  if (device.device_class == DeviceClass::kSiw && only_roce) {
    return errorf(Code::kUnsupported,
                  "drop RoCE packets of {}: siw sends TCP and no RoCE; say 'frames: all'",
                  device.name);
  }
  if (isSoftware(device.device_class)) return DropMechanism::kTrafficControl;
  if (device.device_class == DeviceClass::kMlx5Roce) {
    if (only_roce) return DropMechanism::kSteeringRule;
    return errorf(Code::kUnsupported,
                  "drop all frames of {}: an adapter's rules for RDMA see RDMA packets only, not "
                  "every frame of its interface; say 'frames: roce'",
                  device.name);
  }
  const Status refusal = requireTrafficControl(device, "drop packets");
  return Status(refusal.code(),
                refusal.message() +
                    "; drop them in the switch (an access list, or its port), or make the queue "
                    "pairs of a job lose completions (completion_loss)");
}

Result<RateMechanism> rateMechanism(const DeviceIdentity& device) {
  if (isSoftware(device.device_class)) return RateMechanism::kTrafficControl;
  if (device.device_class != DeviceClass::kInfiniband) return RateMechanism::kDcbMaxrate;
  const Status refusal = requireTrafficControl(device, "limit the rate");
  return Status(
      refusal.code(),
      refusal.message() +
          ", and DCB's rate limits are Ethernet's; lower the link's speed or width at the "
          "switch (ibportstate), or pace the queue pairs of a job (qp_rate)");
}

Status requirePortOfNetdev(const DeviceIdentity& device) {
  if (device.device_class != DeviceClass::kInfiniband) return okStatus();
  return errorf(
      Code::kUnsupported,
      "take the port of {} down: it is InfiniBand, whose port does not follow a network "
      "interface (ib0 is only IPoIB); disable the port by 'ibportstate -C {} <lid> <port> "
      "disable', or the switch's",
      device.name, device.name);
}

Status requireDeletable(const DeviceIdentity& device) {
  if (isSoftware(device.device_class)) return okStatus();
  return errorf(
      Code::kUnsupported,
      "delete the RDMA device {}: it is {}, and the kernel deletes only devices in software "
      "(rxe, siw); to lose hardware use rdma_port_down, or unbind its driver by hand "
      "(/sys/bus/pci/drivers/.../unbind: all its ports go, and may need a reset to return)",
      device.name, toString(device.device_class));
}

}  // namespace faultline::rdma
