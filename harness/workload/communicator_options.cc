#include "harness/workload/communicator_options.h"

#include "resilient_ccl/fabric/host_identity.h"
#include "resilient_ccl/schedule/written/read_schedule.h"

namespace faultline::workload {
namespace {

telemetry::Mode telemetryMode(scenario::TelemetryMode mode) {
  switch (mode) {
    case scenario::TelemetryMode::kOff:
      return telemetry::Mode::kOff;
    case scenario::TelemetryMode::kNull:
      return telemetry::Mode::kNull;
    case scenario::TelemetryMode::kOn:
      return telemetry::Mode::kOn;
  }
  return telemetry::Mode::kOff;
}

channel::LinkOptions linkOptions(const RankConfig& config) {
  const scenario::Limits& limits = config.limits;
  channel::LinkOptions link;
  link.resilient = config.resilient;
  link.policy = config.policy;
  link.giveUp = limits.giveUp;
  link.longestHoldOff = limits.longestHoldOff;
  link.holdOff = limits.holdOff;
  link.holdOffGrowth = limits.holdOffGrowth;
  link.holdOffMemory = limits.holdOffMemory;
  link.suspectAfter = limits.suspectAfter;
  link.suspectProbeInterval = limits.probeInterval;
  link.returnProbeInterval = limits.returnProbeInterval;
  link.longestReturnInterval = limits.longestReturnProbeInterval;
  link.answersToReturn = limits.answersToReturn;
  link.idleProbeInterval = limits.idleProbeInterval;
  link.chunkBytes = limits.chunk;
  link.windowTime = limits.window;
  link.tailBudget = limits.tailBudget;
  return link;
}

}  // namespace

Result<comm::CommunicatorOptions> communicatorOptions(const RankConfig& config) {
  comm::CommunicatorOptions options;
  options.rank = config.rank;
  options.size = config.size;
  ASSIGN_OR_RETURN(options.rendezvous.address,
                   transport::tcp::parseAddress(config.rendezvousAddress));
  options.rendezvous.port = config.rendezvousPort;
  options.segments = config.segments;
  options.algorithm = config.algorithm;
  options.planned = config.planned;
  if (!config.schedule.empty()) {
    ASSIGN_OR_RETURN(options.written, schedule::readSchedule(config.schedule));
  }
  options.setupTimeout = config.limits.deadline;
  options.railGrace = config.limits.connect;
  options.collectiveTimeout =
      config.excludeAfter > 0s ? config.excludeAfter : config.limits.collectiveTimeout;
  options.telemetry = telemetryMode(config.telemetry);
  fabric::FabricOptions& fabric = options.fabric;
  fabric.jobKey = config.jobKey;
  for (const RankConfig::Nic& nic : config.nics) {
    ASSIGN_OR_RETURN(const std::uint32_t address, transport::tcp::parseAddress(nic.address));
    fabric.nics.push_back({.device = nic.device, .address = address});
  }
  ASSIGN_OR_RETURN(fabric.managementAddress,
                   transport::tcp::parseAddress(config.managementAddress));
  fabric.host = fabric::hostIdentity();
  fabric.controlTos = config.controlTos;
  fabric.link = linkOptions(config);
  fabric.connectTimeout = config.limits.connectTimeout;
  fabric.ioThreads = config.ioThreads;
  return options;
}

}  // namespace faultline::workload
