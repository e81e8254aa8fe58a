#include <fmt/format.h>

#include <map>

#include "reports/assets.h"
#include "reports/renderer.h"
#include "reports/report_view.h"
#include "reports/text.h"

namespace faultline::reports {
namespace {

// The file stays below 1 MB, so that mail and artifact viewers open it; the library, styles and
// scripts take about a quarter of that.
constexpr std::size_t kDataBudget = 700'000;

std::string escapedForHtml(const std::string& text) {
  std::string safe;
  for (const char character : cleanText(text)) {
    switch (character) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += character;
    }
  }
  return safe;
}

/// Replaces each {{name}} in one pass, so that inserted text is never looked at again.
std::string fill(std::string_view page, const std::map<std::string, std::string_view>& values) {
  std::string filled;
  while (true) {
    const std::size_t open = page.find("{{");
    const std::size_t close = page.find("}}", open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    filled += page.substr(0, open);
    const auto value = values.find(std::string(page.substr(open + 2, close - open - 2)));
    if (value != values.end()) filled += value->second;
    page.remove_prefix(close + 2);
  }
  return filled += page;
}

class HtmlRenderer final : public Renderer {
 public:
  const char* name() const override { return "html"; }
  const char* fileName() const override { return "report.html"; }
  std::string text(const ScenarioResult& result) const override {
    const std::string title = escapedForHtml(
        fmt::format("{} · {} · Faultline", scenarioName(result), nameOf(result.verdict)));
    const std::string data = reportViewText(result, kDataBudget);
    return fill(assets::reportTemplate(), {{"title", title},
                                           {"css", assets::reportCss()},
                                           {"chartjs", assets::chartJsLibrary()},
                                           {"data", data},
                                           {"elements", assets::elementsJs()},
                                           {"charts", assets::chartsJs()},
                                           {"script", assets::reportJs()}});
  }
};

}  // namespace

std::unique_ptr<Renderer> makeHtmlRenderer() { return std::make_unique<HtmlRenderer>(); }

}  // namespace faultline::reports
