#include "reports/renderer.h"

#include <filesystem>
#include <system_error>

#include "base/atomic_file.h"
#include "base/claimed_folder.h"
#include "reports/result_json.h"

namespace faultline::reports {
namespace {

class JsonRenderer final : public Renderer {
 public:
  const char* name() const override { return "json"; }
  const char* fileName() const override { return "result.json"; }
  std::string text(const ScenarioResult& result) const override { return toJsonText(result); }
};

Status renderWith(const std::vector<std::unique_ptr<Renderer>>& renderers, std::size_t first,
                  const ScenarioResult& result, const std::string& directory) {
  Status status;
  for (std::size_t i = first; i < renderers.size(); ++i) {
    if (!renderers[i]->applies(result)) continue;
    const Status one = renderers[i]->render(result, directory);
    if (status.ok()) status = one;
  }
  return status;
}

}  // namespace

Status Renderer::render(const ScenarioResult& result, const std::string& directory) const {
  return writeFileAtomically(directory + "/" + fileName(), text(result), Sync::kYes,
                             Links::kRefused);
}

std::unique_ptr<Renderer> makeJsonRenderer() { return std::make_unique<JsonRenderer>(); }

std::vector<std::unique_ptr<Renderer>> allRenderers() {
  std::vector<std::unique_ptr<Renderer>> renderers;
#define FAULTLINE_MADE(Name) renderers.push_back(make##Name##Renderer());
  FAULTLINE_RENDERERS(FAULTLINE_MADE)
#undef FAULTLINE_MADE
  return renderers;
}

std::vector<std::string> filesOf(const ScenarioResult& result) {
  std::vector<std::string> names;
  for (const auto& renderer : allRenderers()) {
    if (renderer->applies(result)) names.emplace_back(renderer->fileName());
  }
  return names;
}

Status renderAll(const ScenarioResult& result, const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Status::fromErrno(error.value(), "create the directory " + directory);
  return renderWith(allRenderers(), 0, result, directory);
}

Status renderDirectory(const std::string& directory) {
  ASSIGN_OR_RETURN(const ScenarioResult result, readResult(directory));
  // Who names a result by a link means the folder that it leads to.
  std::error_code error;
  const std::string folder = std::filesystem::canonical(directory, error);
  if (error) return Status::fromErrno(error.value(), "open the directory " + directory);
  std::vector<std::string> files = filesOf(result);
  std::erase(files, makeJsonRenderer()->fileName());
  ASSIGN_OR_RETURN(
      ClaimedFiles claimed,
      ClaimedFiles::claim(
          folder, files,
          {.name = makeJsonRenderer()->fileName(), .text = kResultSchema, .besideRecord = false},
          Earlier::kReplaced));
  RETURN_IF_ERROR(renderWith(allRenderers(), 1, result, folder));  // all but result.json itself
  return claimed.finish();
}

}  // namespace faultline::reports
