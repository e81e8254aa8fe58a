#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/comparison.h"
#include "reports/confusion.h"
#include "reports/result.h"

/// Summaries in Markdown as GitHub reads it: for the summary of a job, and for comments on pull
/// requests. They stay below the limit of a comment (65536 characters).
namespace faultline::reports {

/// Any text so that it stays that text between the marks of Markdown, on one line, also in a cell
/// of a table. It becomes no link, mention, tag or emphasis.
std::string markdownText(std::string_view text);

/// The same in the letters of code: for names, and for what users wrote.
std::string markdownCode(std::string_view text);

/// Rows of cells that are Markdown already; the first row is the heading. Columns from the second
/// on are numbers where `numbers` says so.
std::string markdownTable(const std::vector<std::vector<std::string>>& rows,
                          const std::vector<bool>& numbers);

/// The text as far as it fits into a comment, and a line that says so where it does not.
std::string bounded(std::string text);

/// One result: verdict, headline, strategies (of calls what each kept), expectations, remarks.
std::string markdownSummary(const ScenarioResult& result);

/// Many results: a row for each, the worst first, and what was injected against what was found.
std::string markdownSummary(const ConfusionMatrix& matrix,
                            const std::vector<ScenarioResult>& results);

/// Two results: what changed.
std::string markdownSummary(const Comparison& comparison);

}  // namespace faultline::reports
