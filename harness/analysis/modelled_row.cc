#include "harness/analysis/modelled_row.h"

#include <fmt/format.h>

#include <vector>

#include "harness/baseline/strategy_table.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::run {
namespace {

constexpr std::string_view kAllLonger = "all requests until the next fault longer by";
constexpr std::string_view kJobLonger = "the job until the next fault longer by";

/// What was measured, in the order in which it is told.
std::vector<baseline::Modelled::Term> termsOf(const baseline::ServingCase& serving) {
  return {{"offered", serving.requestsPerSecond, "requests/s"},
          {"highest rate kept up", serving.capacity, "requests/s"},
          {"prompt", serving.promptTokens, "tokens"},
          {"output", serving.outputTokens, "tokens"},
          {"TTFT of the calmest rate", serving.prefillSeconds, "s"},
          {"TTFT", serving.firstTokenSeconds, "s"},
          {"TPOT", serving.tokenSeconds, "s"},
          {"arrival to last token", serving.endToEndSeconds, "s"}};
}

}  // namespace

reports::Summary modelledRow(const scenario::Strategy& strategy,
                             const Result<baseline::ServingCase>& serving) {
  reports::Summary row;
  row.strategy = strategy.name;
  row.origin = reports::Origin::kModelled;
  const baseline::StrategySpec& spec = *baseline::findStrategy(strategy.kind());
  const scenario::WorkloadKind* const only = scenario::findWorkloadKind(spec.workload);
  const bool ofServer = only != nullptr && only->hasRequests;
  const auto modelled =
      baseline::modelOf(spec.name, serving.ok() ? &*serving : nullptr, strategy.options);
  if (!modelled) {
    row.note = "modelled, and it has no number: " + std::string(serving.status().message());
    return row;
  }
  reports::Model& model = row.model.emplace();
  for (const ParameterSpec& parameter : spec.options) {
    const auto& value = strategy.options.value(parameter.name);
    model.parameters.push_back({.name = std::string(parameter.name),
                                .value = formatParameter(value),
                                .meaning = std::string(parameter.meaning)});
  }
  row.note = "modelled, not executed:";
  const char* separator = " ";
  const auto tell = [&](const baseline::Modelled::Term& term, std::string_view origin) {
    model.terms.push_back({.name = fmt::format("{}{}", origin, term.name),
                           .value = term.value,
                           .unit = std::string(term.unit)});
    if (term.name.ends_with(baseline::kLongerBy)) return;  // of other requests than those of runs
    row.note += fmt::format("{}{} {:.4g} {}", separator, term.name, term.value, term.unit);
    separator = ", ";
  };
  if (ofServer) {
    const std::string conversion =
        serving->scale == 1
            ? "as it is"
            : fmt::format("as without 'scale' (times x {0:.0f}, rates / {0:.0f})", serving->scale);
    row.note += fmt::format(
        " what one fault costs in the time of requests (percentages, of all requests from it to "
        "the "
        "next one, are in result.json; those of executed rows are of the {:.4g} requests of a run "
        "with its faults). Measured by fault_free, {}:",
        serving->requests, conversion);
    for (const auto& term : termsOf(*serving)) tell(term, "measured: ");
    separator = "; modelled, in real times: ";
  }
  if (!ofServer) {
    row.note +=
        " what one fault costs the job (the percentage, of the time from it to the next one, is in "
        "result.json; those of executed rows are of a run with its faults):";
  }
  for (const auto& term : modelled->terms) tell(term, "");
  if (modelled->faultSeconds) {
    row.fault_cost = reports::FaultCost{*modelled->faultSeconds, modelled->faultRequests};
  }
  if (modelled->overheadPercent) {
    tell({ofServer ? kAllLonger : kJobLonger, *modelled->overheadPercent, "%"}, "");
  }
  if (!modelled->note.empty()) row.note += "; " + modelled->note;
  return row;
}

}  // namespace faultline::run
