#include "harness/run/told_numbers.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "harness/command/extract.h"
#include "harness/run/program_plan.h"

namespace faultline::run {
namespace {

/// nullopt when there is no such file.
std::optional<std::string> textOf(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

Result<std::vector<double>> printed(const command::Metric& metric,
                                    const std::vector<std::string>& folders) {
  std::vector<double> numbers;
  for (const std::filesystem::path folder : folders) {
    for (const char* name : {kStdoutFile, kStderrFile}) {
      const std::optional<std::string> text = textOf(folder / name);
      if (!text) continue;
      ASSIGN_OR_RETURN(const std::vector<double> found, command::numbersIn(*text, metric.regex));
      numbers.insert(numbers.end(), found.begin(), found.end());
    }
  }
  if (numbers.empty()) {
    return errorf(Code::kNotFound, "nothing that the processes printed matches '{}'", metric.regex);
  }
  return numbers;
}

Result<std::vector<double>> written(const command::Metric& metric,
                                    const std::vector<std::string>& folders) {
  std::vector<double> numbers;
  for (std::size_t rank = 0; rank < folders.size(); ++rank) {
    const std::filesystem::path file = std::filesystem::path(folders[rank]) / metric.json;
    const std::optional<std::string> text = textOf(file);
    if (!text || text->empty()) continue;
    const Result<double> number = command::numberAt(*text, metric.path);
    if (!number.ok())
      return number.status().withContext(fmt::format("{} of rank {}", metric.json, rank));
    numbers.push_back(*number);
  }
  if (numbers.empty()) return errorf(Code::kNotFound, "no process has written {}", metric.json);
  return numbers;
}

Result<reports::Quantity> numberOf(const command::Metric& metric,
                                   const std::vector<std::string>& folders) {
  const auto numbers = metric.regex.empty() ? written(metric, folders) : printed(metric, folders);
  if (!numbers.ok()) return numbers.status().withContext("metric " + metric.name);
  return reports::Quantity{*command::pick(metric.take, *numbers), metric.unit};
}

}  // namespace

Result<ToldNumbers> toldNumbers(const std::vector<command::Metric>& metrics,
                                const std::vector<std::string>& folders) {
  ToldNumbers told;
  for (const command::Metric& metric : metrics) {
    ASSIGN_OR_RETURN(told[metric.name], numberOf(metric, folders));
  }
  return told;
}

ToldNumbers toldBeforeFailure(const std::vector<command::Metric>& metrics,
                              const std::vector<std::string>& folders) {
  ToldNumbers told;
  for (const command::Metric& metric : metrics) {
    if (const auto number = numberOf(metric, folders); number.ok()) told[metric.name] = *number;
  }
  return told;
}

std::string lastLines(const std::string& file) {
  constexpr std::streamoff kMost = 2000;
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) return "";
  const std::streamoff size = stream.tellg();
  stream.seekg(size > kMost ? size - kMost : 0);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (size > kMost) text.erase(0, text.find('\n') + 1);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace faultline::run
