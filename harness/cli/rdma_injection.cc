#include "harness/cli/rdma_injection.h"

#include <charconv>

#include "injector/faults/rdma_registry.h"

namespace faultline::cli {
namespace {

constexpr std::string_view kRdmaExample = "dev=rxe0";

Result<rdma::RdmaTarget> rdmaTarget(const Injection& injection) {
  rdma::RdmaTarget target;
  for (const auto& [key, value] : injection.target) {
    if (key == "dev") {
      target.device = value;
    } else if (key == "other_end") {
      target.other_end = value;
    } else if (key == "port") {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), target.port);
      if (error != std::errc{} || end != value.data() + value.size()) {
        return errorf(Code::kInvalidArgument, "target: '{}' is no number of a port", value);
      }
    } else {
      return errorf(Code::kInvalidArgument,
                    "target: {} has no '{}'; it has dev, port, other_end, like {}",
                    injection.kind->name, key, kRdmaExample);
    }
  }
  if (target.device.empty()) {
    return errorf(Code::kInvalidArgument, "target: which RDMA device? Like {}", kRdmaExample);
  }
  return target;
}

}  // namespace

Status addRdmaFault(const std::map<std::string, std::string>& parameters, Injection& injection) {
  ASSIGN_OR_RETURN(const rdma::RdmaTarget target, rdmaTarget(injection));
  ASSIGN_OR_RETURN(injection.parameters,
                   injector::FaultParameters::parse(*injection.kind, parameters));
  ASSIGN_OR_RETURN(injection.fault,
                   injector::makeRdmaFault(injection.kind->name, injection.parameters, target));
  return okStatus();
}

}  // namespace faultline::cli
