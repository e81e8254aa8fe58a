#include "harness/cli/rdma_injection.h"

#include <array>
#include <charconv>

#include "injector/faults/registry.h"
#include "injector/rdma/rdma_target.h"

namespace faultline::cli {
namespace {

constexpr std::string_view kRdmaExample = "dev=rxe0";

}  // namespace

Result<rdma::RdmaTarget> rdmaTarget(std::string_view kind,
                                    const std::map<std::string, std::string>& target) {
  rdma::RdmaTarget read;
  for (const auto& [key, value] : target) {
    if (key == "dev") {
      read.device = value;
    } else if (key == "other_end") {
      read.other_end = value;
    } else if (key == "port") {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), read.port);
      if (error != std::errc{} || end != value.data() + value.size() || read.port == 0) {
        return errorf(Code::kInvalidArgument,
                      "target: '{}' is no number of a port; they are counted from 1", value);
      }
    } else {
      constexpr std::array<std::string_view, 3> kKnown{"dev", "port", "other_end"};
      return noSuchKey(kind, key, kKnown, kRdmaExample);
    }
  }
  if (read.device.empty()) {
    return errorf(Code::kInvalidArgument, "target: which RDMA device? Like {}", kRdmaExample);
  }
  return read;
}

Status addRdmaFault(const std::map<std::string, std::string>& parameters, Injection& injection) {
  ASSIGN_OR_RETURN(const rdma::RdmaTarget target,
                   rdmaTarget(injection.kind->name, injection.target));
  ASSIGN_OR_RETURN(injection.parameters,
                   injector::FaultParameters::parse(*injection.kind, parameters));
  ASSIGN_OR_RETURN(injection.fault,
                   injector::makeRdmaFault(injection.kind->name, injection.parameters, target));
  return okStatus();
}

}  // namespace faultline::cli
