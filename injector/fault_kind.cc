#include "injector/fault_kind.h"

#include <algorithm>
#include <array>

namespace faultline::injector {
namespace {

std::string describe(const Finding& finding) {
  if (finding.cause.empty()) return "no rail is given up";
  if (finding.cause == kAnyCause) return "anything";
  std::string text(finding.cause);
  if (!finding.deadDirection.empty()) text += fmt::format(" ({})", finding.deadDirection);
  if (finding.orRail) text += ", or rail";
  return finding.orNone ? text + ", or nothing" : text;
}

std::string describeSignatures(const FaultKind& kind) {
  std::string rows;
  for (const Signature& signature : kind.signatures) {
    std::string text = fmt::format("at the node that is struck: {}; at the others: {}",
                                   describe(signature.own), describe(signature.peer));
    if (!signature.parameter.empty()) {
      text = fmt::format("{}: {}: {}", signature.parameter, signature.value, text);
    }
    rows += describeRow("is found as", text);
  }
  return rows.empty() ? describeRow("is found as", describe(Finding{})) : rows;
}

}  // namespace

Signature signatureOf(const FaultKind& kind, const std::map<std::string, std::string>& parameters) {
  for (const Signature& signature : kind.signatures) {
    const auto given = parameters.find(std::string(signature.parameter));
    const bool is = given != parameters.end() && given->second == signature.value;
    if (signature.parameter.empty() || is) return signature;
  }
  return {};
}

std::string shortName(const FaultKind& kind, const std::map<std::string, std::string>& parameters) {
  std::string text(kind.name);
  for (const ParameterSpec& spec : kind.parameters) {
    const auto given = parameters.find(std::string(spec.name));
    const bool first = spec.name == kind.parameters.front().name;
    if (given == parameters.end() || (!first && given->second == spec.defaultText)) continue;
    text += " " + given->second;
  }
  return text;
}

const ParameterSpec* findParameter(const FaultKind& kind, std::string_view name) {
  for (const ParameterSpec& spec : kind.parameters) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

Result<FaultParameters> FaultParameters::parse(const FaultKind& kind,
                                               const std::map<std::string, std::string>& texts) {
  ASSIGN_OR_RETURN(Parameters values, Parameters::parse(kind.name, kind.parameters, texts));
  return FaultParameters(std::move(values));
}

std::string summaryOf(const FaultKind& kind) {
  std::string text(kind.summary);
  if (!kind.unproven.empty()) text += fmt::format(" Unproven: {}.", kind.unproven);
  return text;
}

std::string describeFault(const FaultKind& kind, std::string_view cluster) {
  const bool rdma = kind.target == TargetKind::kRdma;
  return fmt::format("{}\n\n", kind.name) + describeRow("does", kind.summary) +
         describeRow("job sees", kind.sees) + describeRow("evidence", kind.evidence) +
         describeRow("undo", kind.undo) +
         (kind.unproven.empty() ? "" : describeRow("unproven", kind.unproven)) +
         (rdma ? "" : describeSignatures(kind)) + "\nparameters\n" +
         describeParameters(kind.parameters) +
         (rdma
              ? fmt::format("\nacts on an RDMA device: of this machine by 'faultline inject', of a "
                            "guest in scenarios with\n'{}': docs/rdma_faults.md\n",
                            cluster)
              : "") +
         "\nevery fault also has target, at | during, duration | until: end, and times with "
         "every\n";
}

}  // namespace faultline::injector
