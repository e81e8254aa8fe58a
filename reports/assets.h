#pragma once

#include <string_view>

/// The files of reports/assets/, embedded into the binary at build time (FaultlineAssets.cmake).
namespace faultline::reports::assets {

std::string_view pageHeadTemplate();  ///< head.html, with placeholders like {{title}}
std::string_view reportTemplate();    ///< report.html, likewise
std::string_view matrixTemplate();
std::string_view compareTemplate();   ///< compare.html, likewise
std::string_view overviewTemplate();  ///< overview.html, likewise
std::string_view reportCss();         ///< report.css
std::string_view pageJs();            ///< page.js: what all parts of the report share
std::string_view reportTimeJs();      ///< report_time.js: what runs did over time
std::string_view reportRecoveryJs();  ///< report_recovery.js: faults, failovers, restarts
std::string_view reportCallsJs();     ///< report_calls.js: calls, plans, models, requests
std::string_view reportJs();          ///< report.js: the rest of the report, and its order
std::string_view overviewJs();        ///< overview.js: the tables of overview.html
std::string_view elementsJs();        ///< elements.js: elements, tables, numbers as text
std::string_view chartsJs();          ///< charts.js: the page's charts
std::string_view chartsLogJs();       ///< charts_log.js: those with a logarithmic axis
std::string_view chartJsLibrary();    ///< Chart.js, the vendored library

}  // namespace faultline::reports::assets
