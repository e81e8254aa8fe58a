#include "harness/cli/result_folders.h"

#include <algorithm>
#include <filesystem>

#include "base/input_file.h"
#include "reports/result_json.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;

/// The folder itself when it has a result, else those in it that have one, by name.
std::vector<std::string> foldersWithResults(const std::string& directory) {
  std::vector<std::string> folders;
  std::error_code ignored;  // what cannot be looked at has no result
  if (!fs::exists(directory + "/result.json", ignored)) {
    for (fs::directory_iterator entry(directory, ignored), end; !ignored && entry != end;
         entry.increment(ignored)) {
      if (fs::exists(entry->path() / "result.json", ignored)) folders.push_back(entry->path());
    }
    std::ranges::sort(folders);
  }
  if (folders.empty()) folders.push_back(directory);  // reading it says what is wrong
  return folders;
}

Result<reports::ScenarioResult> readFileOfResult(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, readFile(path));
  Result<reports::ScenarioResult> result = reports::parseResult(text);
  if (!result.ok()) return result.status().withContext(path);
  return result;
}

}  // namespace

Result<std::vector<FoundResult>> findResults(std::span<const std::string> paths) {
  std::vector<FoundResult> results;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (fs::exists(path, ignored) && !fs::is_directory(path, ignored)) {
      ASSIGN_OR_RETURN(reports::ScenarioResult result, readFileOfResult(path));
      results.push_back({std::move(result), ""});
      continue;
    }
    for (const std::string& folder : foldersWithResults(path)) {
      ASSIGN_OR_RETURN(reports::ScenarioResult result, reports::readResult(folder));
      results.push_back({std::move(result), folder});
    }
  }
  return results;
}

Result<std::vector<reports::ScenarioResult>> readResults(std::span<const std::string> paths) {
  ASSIGN_OR_RETURN(std::vector<FoundResult> found, findResults(paths));
  std::vector<reports::ScenarioResult> results;
  for (FoundResult& one : found) results.push_back(std::move(one.result));
  return results;
}

}  // namespace faultline::cli
