#include <fmt/format.h>

#include "reports/assets.h"
#include "reports/html_text.h"
#include "reports/page_head.h"
#include "reports/renderer.h"
#include "reports/report_view.h"

namespace faultline::reports {
namespace {

// The file stays below 1 MB, so that mail and artifact viewers open it; the library, styles and
// scripts take about a third of that.
constexpr std::size_t kDataBudget = 670'000;

class HtmlRenderer final : public Renderer {
 public:
  const char* name() const override { return "html"; }
  const char* fileName() const override { return "report.html"; }
  std::string text(const ScenarioResult& result) const override {
    const std::string head =
        pageHead(fmt::format("{} · {} · Faultline", scenarioName(result), nameOf(result.verdict)),
                 PageScripts::kInline);
    const std::string data = reportViewText(result, kDataBudget);
    return filled(assets::reportTemplate(), {{"head", head},
                                             {"chartjs", assets::chartJsLibrary()},
                                             {"data", data},
                                             {"elements", assets::elementsJs()},
                                             {"charts", assets::chartsJs()},
                                             {"charts_log", assets::chartsLogJs()},
                                             {"page", assets::pageJs()},
                                             {"time", assets::reportTimeJs()},
                                             {"recovery", assets::reportRecoveryJs()},
                                             {"calls", assets::reportCallsJs()},
                                             {"script", assets::reportJs()}});
  }
};

}  // namespace

std::unique_ptr<Renderer> makeHtmlRenderer() { return std::make_unique<HtmlRenderer>(); }

}  // namespace faultline::reports
