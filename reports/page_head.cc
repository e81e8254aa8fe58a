#include "reports/page_head.h"

#include "reports/assets.h"
#include "reports/html_text.h"

namespace faultline::reports {

std::string pageHead(const std::string& title, PageScripts scripts) {
  const bool run = scripts == PageScripts::kInline;
  return filled(assets::pageHeadTemplate(), {{"title", escapedForHtml(title)},
                                             {"scripts", run ? "script-src 'unsafe-inline'; " : ""},
                                             {"css", assets::reportCss()}});
}

}  // namespace faultline::reports
