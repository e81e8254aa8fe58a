#include "harness/run/modelled_row.h"

#include <fmt/format.h>

#include "harness/baseline/strategy_table.h"

namespace faultline::run {

reports::Summary modelledRow(const scenario::Strategy& strategy,
                             const baseline::ServingCase* serving) {
  reports::Summary row;
  row.strategy = strategy.name;
  row.origin = reports::Origin::kModelled;
  const baseline::StrategySpec& spec = *baseline::findStrategy(strategy.kind());
  const auto modelled = baseline::modelOf(spec.name, serving, strategy.options);
  if (!modelled) {
    row.note =
        "modelled: it has no number, as nothing puts together yet what it needs of a server's runs";
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
  for (const baseline::Modelled::Term& term : modelled->terms) {
    model.terms.push_back(
        {.name = std::string(term.name), .value = term.value, .unit = std::string(term.unit)});
    row.note += fmt::format("{}{} {:.4g} {}", separator, term.name, term.value, term.unit);
    separator = ", ";
  }
  if (modelled->overheadPercent) row.overhead_pct = reports::Overhead{*modelled->overheadPercent};
  if (!modelled->note.empty()) row.note += "; " + modelled->note;
  return row;
}

}  // namespace faultline::run
