#pragma once

#include <array>
#include <string_view>

#include "injector/fault_table.h"

/// The rows of the table (fault_table.cc) for faults of RDMA devices: of this machine by `faultline
/// inject`, and of guests in scenarios (docs/rdma_faults.md, docs/rdma_lab.md).
namespace faultline::injector {

inline constexpr std::array<std::string_view, 3> kRdmaWays{"both", "out", "in"};
inline constexpr std::array<std::string_view, 2> kRdmaFrames{"roce", "all"};
inline constexpr std::array<std::string_view, 9> kTrafficClassNames{"all", "0", "1", "2", "3",
                                                                    "4",   "5", "6", "7"};
inline constexpr std::array<std::string_view, 2> kRdmaUsers{"refuse", "leave"};

inline constexpr std::array kRdmaSilentDropParameters{
    ParameterSpec{"direction", ParameterType::kEnum, "both",
                  "out: what the device sends; in: what it should receive", kRdmaWays},
    ParameterSpec{"frames", ParameterType::kEnum, "roce",
                  "roce: RoCE v2 only, so that everything else on the interface lives; all: every "
                  "frame of the interface (devices in software only)",
                  kRdmaFrames},
};

inline constexpr std::array kRdmaThrottleParameters{
    ParameterSpec{"rate",
                  ParameterType::kRateOrPercent,
                  "",
                  "what is left of what the device can send: a rate, or a percentage of the link's "
                  "where its driver tells it",
                  {},
                  0.1,
                  100},
    ParameterSpec{"traffic_class", ParameterType::kEnum, "all",
                  "adapters only: the traffic class to be limited; all: each of the eight to this "
                  "rate",
                  kTrafficClassNames},
};

inline constexpr std::array kRdmaLinkDeleteParameters{
    ParameterSpec{"users", ParameterType::kEnum, "refuse",
                  "what if programs have the device open. refuse: nothing is done. leave: it goes "
                  "for everybody else; they keep what they have, the kernel ends the deletion when "
                  "they have closed it, and only then can it be undone",
                  kRdmaUsers},
};

inline constexpr std::array<FaultKind, 4> kRdmaFaults{
    FaultKind{
        .name = "rdma_port_down",
        .summary = "The port of an RDMA device goes down with its network interface, until the "
                   "fault ends.",
        .sees = "the asynchronous event IBV_EVENT_PORT_ERR at once; a sender on this node fails "
                "(rxe: a local operation error); IBV_EVENT_PORT_ACTIVE when it is over",
        .evidence =
            "the RDMA port is DOWN and its physical state no longer LINK_UP, as RDMA netlink "
            "tells; its counter of received packets stands still; the port of the other end, "
            "where that is on this machine",
        .undo =
            "the interface is switched on again, addresses and routes that were lost are put back, "
            "and the port is waited for",
        .cutsLink = true,
        .target = TargetKind::kRdma,
        .unproven = "on adapters (proven on rxe): some keep their wire lit when they are switched "
                    "off, so that the other end sees silence"},
    FaultKind{
        .name = "rdma_silent_drop",
        .summary = "Packets of an RDMA device vanish while its port stays ACTIVE.",
        .sees = "nothing for a long time, then IBV_WC_RETRY_EXC_ERR",
        .evidence =
            "carrier and the RDMA port stay. In software: probe packets, which left the interface "
            "before the fault, no longer do; the device's counter of received packets stands "
            "still. Adapters: their counters of packets and requests, which moved before under the "
            "job's load, stand still, while requests are repeated",
        .undo = "in software: the filter or queue is removed, and probe packets leave again; "
                "adapters: the rule is destroyed, and goes with the process at the latest",
        .parameters = kRdmaSilentDropParameters,
        .cutsLink = true,
        .target = TargetKind::kRdma,
        .unproven = "on adapters (a steering rule of mlx5, others are refused; proven on rxe): the "
                    "commands are exact and tested, no adapter has dropped a packet"},
    FaultKind{
        .name = "rdma_throttle",
        .summary = "An RDMA device sends slowly, and nothing else happens (a gray failure).",
        .sees = "nothing but time and counters",
        .evidence =
            "in software: bytes per second that leave the interface's queue while there is a "
            "backlog, by probe frames where there is no load; adapters: bytes per second that the "
            "port's counters tell, before and in the fault, under the job's own load",
        .undo = "in software: the queue is removed; adapters: the limits that were read before are "
                "written again",
        .parameters = kRdmaThrottleParameters,
        .target = TargetKind::kRdma,
        .unproven = "on adapters (DCB maxrate; proven on rxe): the messages are exact and tested, "
                    "no adapter was measured"},
    FaultKind{
        .name = "rdma_link_delete",
        .summary = "An RDMA device in software (rxe, siw) is deleted, and made again when the "
                   "fault ends.",
        .sees = "programs that look for the device do not find it; what those see that have it "
                "open depends on its driver: of rxe in Linux 6.1 nothing",
        .evidence = "the kernel no longer lists it, and its character device cannot be opened",
        .undo = "a device with the same name and type is added over the same interface",
        .parameters = kRdmaLinkDeleteParameters,
        .cutsLink = true,
        .target = TargetKind::kRdma,
        .unproven = "on siw, which the kernels at hand do not have (proven on rxe)"},
};

}  // namespace faultline::injector
