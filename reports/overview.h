#pragma once

#include <span>
#include <string>

#include "base/claimed_folder.h"
#include "base/status.h"
#include "reports/result.h"

namespace faultline::reports {

/// A result, and where the report of its own is, seen from the overview; empty: there is none.
struct OverviewEntry {
  const ScenarioResult* result;
  std::string report;
};

/// What overview.js reads: per scenario the verdict and a row for each strategy, with intervals and
/// the bound. Modelled rows are marked; a strategy that another scenario has and this one has not
/// is not mentioned.
Json overviewView(std::span<const OverviewEntry> entries);

/// Many results on one page that loads nothing: strategies against baselines, a section for each
/// result.
std::string overviewHtml(std::span<const OverviewEntry> entries);

/// Writes overview.html into `directory`, which is created when missing. Errors as
/// ClaimedFiles::claim; with kReplaced a page of an earlier version is replaced.
Status writeOverview(std::span<const OverviewEntry> entries, const std::string& directory,
                     Earlier earlier = Earlier::kRefused);

}  // namespace faultline::reports
