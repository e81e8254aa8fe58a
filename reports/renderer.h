#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "reports/renderer_list.h"
#include "reports/result.h"

namespace faultline::reports {

/// Turns a result into one file. Stateless; may be used from several threads.
class Renderer {
 public:
  virtual ~Renderer() = default;

  /// What users call it: "html", "junit", ...
  virtual const char* name() const = 0;
  /// The file it writes, e.g. "report.html".
  virtual const char* fileName() const = 0;
  /// Whether a result has anything to write into it.
  virtual bool applies(const ScenarioResult& /*result*/) const { return true; }
  /// The file's content.
  virtual std::string text(const ScenarioResult& result) const = 0;

  /// Writes the file into `directory`, whole or not at all.
  Status render(const ScenarioResult& result, const std::string& directory) const;
};

/// Each renderer's own: makeCsvRenderer() and so on, beside its class.
#define FAULTLINE_DECLARED(Name) std::unique_ptr<Renderer> make##Name##Renderer();
FAULTLINE_RENDERERS(FAULTLINE_DECLARED)
#undef FAULTLINE_DECLARED

/// All of them, in the order of renderer_list.h.
std::vector<std::unique_ptr<Renderer>> allRenderers();

/// The names of the files that a result gets.
std::vector<std::string> filesOf(const ScenarioResult& result);

/// Writes every file into `directory`, which is created when missing. A renderer that fails does
/// not keep the others from being tried; the first error is returned.
Status renderAll(const ScenarioResult& result, const std::string& directory);

/// Reads `directory`/result.json and writes the other files again. kAlreadyExists when one of them
/// is not of this result.
Status renderDirectory(const std::string& directory);

}  // namespace faultline::reports
