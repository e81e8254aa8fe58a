// A fault of an RDMA device by hand, for guests in which nothing else of ours runs:
//
//   rdma_fault_driver list                             devices, ports, queue pairs, holders
//   rdma_fault_driver KIND DEVICE MILLISECONDS [parameter=value]... [other_end=DEVICE]
//
// One JSON object on stdout, exit codes as those of `faultline inject`.

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"
#include "injector/faults/rdma_registry.h"
#include "injector/rdma/device_class.h"
#include "injector/rdma/nldev.h"

namespace faultline::injector {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kUsage = 2;
constexpr int kCannot = 3;
constexpr int kLeftBroken = 4;
constexpr int kNoEvidence = 5;

volatile std::sig_atomic_t asked_to_end = 0;

int fail(const Status& status, int code, Json report = Json::object()) {
  report["error"] = status.message();
  report["code"] = codeName(status.code());
  std::cout << report.dump() << std::endl;
  return code;
}

Result<Json> listAll() {
  ASSIGN_OR_RETURN(netlink::Socket socket, rdma::openSocket());
  ASSIGN_OR_RETURN(const auto devices, rdma::listDevices(socket));
  Json all = Json::array();
  for (const rdma::Device& device : devices) {
    ASSIGN_OR_RETURN(const auto character, rdma::readCharacterDevice(socket, device.index));
    Json one{{"device", device.name},
             {"protocol", device.protocol},
             {"class", rdma::toString(rdma::classify(character.driver_id, device.protocol))},
             {"character_device", character.name},
             {"ports", Json::array()},
             {"queue_pairs", Json::array()}};
    ASSIGN_OR_RETURN(const auto ports, rdma::listPorts(socket, device.index));
    for (const rdma::Port& port : ports) {
      ASSIGN_OR_RETURN(const auto counters, rdma::readCounters(socket, device.index, port.number));
      one["ports"].push_back({{"port", port.number},
                              {"state", toString(port.state)},
                              {"physical", toString(port.physical)},
                              {"netdev", port.netdev},
                              {"counters", counters}});
    }
    ASSIGN_OR_RETURN(const auto pairs, rdma::listQueuePairs(socket, device.index));
    for (const rdma::QueuePair& pair : pairs) {
      Json row{{"number", pair.number}, {"type", pair.type}, {"state", pair.state}};
      if (pair.remote_number) row["remote"] = *pair.remote_number;
      if (pair.pid) row["pid"] = *pair.pid;
      if (!pair.kernel_owner.empty()) row["kernel"] = pair.kernel_owner;
      one["queue_pairs"].push_back(std::move(row));
    }
    ASSIGN_OR_RETURN(const auto holders, rdma::readHolders(socket, device.index));
    one["contexts"] = holders.contexts;
    one["holders"] = holders.pids;
    all.push_back(std::move(one));
  }
  return all;
}

Status hold(Fault& fault, Duration duration) {
  const TimePoint end = now() + duration;
  while (now() < end && asked_to_end == 0) {
    RETURN_IF_ERROR(fault.step(now()));
    ::poll(nullptr, 0, kLookAgainMs);
  }
  return okStatus();
}

int strike(const std::string& kind_name, const std::string& device, Duration duration,
           std::map<std::string, std::string> texts) {
  rdma::RdmaTarget target{.device = device};
  if (const auto other = texts.extract("other_end")) target.other_end = other.mapped();
  const FaultKind* const kind = findFaultKind(kind_name);
  if (kind == nullptr) return fail(errorf(Code::kNotFound, "no fault '{}'", kind_name), kUsage);
  const auto parameters = FaultParameters::parse(*kind, texts);
  if (!parameters.ok()) return fail(parameters.status(), kUsage);
  auto made = makeRdmaFault(kind_name, *parameters, target);
  if (!made.ok()) return fail(made.status(), kUsage);
  Fault& fault = **made;
  Json report{{"fault", kind_name}, {"device", device}};
  if (const Status status = fault.prepare(); !status.ok()) return fail(status, kCannot, report);
  const Status applied = fault.apply();
  report["mechanism"] = fault.mechanism();
  Status held = applied;
  if (held.ok()) held = hold(fault, duration);
  const auto evidence = held.ok() ? fault.evidence() : Result<Evidence>(held);
  if (evidence.ok()) {
    report["evidence"] = {
        {"kind", evidence->kind}, {"observed", evidence->observed}, {"ok", evidence->ok}};
  }
  const Status reverted = fault.revert();
  report["restored"] = reverted.ok();
  report["transitions"] = Json::array();
  for (const Transition& transition : fault.transitions()) {
    report["transitions"].push_back(
        {{"broken", transition.broken},
         {"took_ms", toMilliseconds(transition.after - transition.before)}});
  }
  if (!reverted.ok()) return fail(reverted, kLeftBroken, report);
  if (!applied.ok()) return fail(applied, kCannot, report);
  if (!evidence.ok()) return fail(evidence.status(), kNoEvidence, report);
  std::cout << report.dump() << std::endl;
  return evidence->ok ? EXIT_SUCCESS : kNoEvidence;
}

}  // namespace

int driverMain(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "list") {
    const auto all = listAll();
    if (!all.ok()) return fail(all.status(), kCannot);
    std::cout << all->dump() << std::endl;
    return EXIT_SUCCESS;
  }
  if (argc < 4) {
    std::cerr << "usage: rdma_fault_driver list | KIND DEVICE MILLISECONDS [name=value]...\n";
    return kUsage;
  }
  std::map<std::string, std::string> texts;
  for (int i = 4; i < argc; ++i) {
    const std::string text(argv[i]);
    const std::size_t at = text.find('=');
    if (at == std::string::npos) return kUsage;
    texts[text.substr(0, at)] = text.substr(at + 1);
  }
  // A fault outlives nobody: whoever ends this early gets it undone.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::signal(signal, [](int) { asked_to_end = 1; });
  }
  return strike(argv[1], argv[2], std::chrono::milliseconds(std::atoi(argv[3])), std::move(texts));
}

}  // namespace faultline::injector

int main(int argc, char** argv) { return faultline::injector::driverMain(argc, argv); }
