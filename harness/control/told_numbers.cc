#include "harness/control/told_numbers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/input_file.h"
#include "harness/command/extract.h"
#include "harness/control/program_plan.h"

namespace faultline::run {
namespace {

constexpr std::size_t kMostTold = std::size_t{64} << 20;  // 16 MiB of what is printed are kept

/// nullopt when there is no such file. It is the program's: it may be anything.
Result<std::optional<std::string>> textOf(const std::filesystem::path& file) {
  auto text = readInput(file, {.what = "file with a metric", .mostBytes = kMostTold});
  if (text.status().code() == Code::kNotFound) return std::optional<std::string>();
  if (!text.ok()) return text.status();
  return std::optional(std::move(*text));
}

Result<std::vector<double>> printed(const command::Metric& metric,
                                    const std::vector<std::string>& folders) {
  std::vector<double> numbers;
  for (const std::filesystem::path folder : folders) {
    for (const char* name : {kStdoutFile, kStderrFile}) {
      ASSIGN_OR_RETURN(const std::optional<std::string> text, textOf(folder / name));
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
    ASSIGN_OR_RETURN(const std::optional<std::string> text, textOf(file));
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
  constexpr off_t kMost = 2000;
  const Result<UniqueFd> opened = openInput(file);
  struct stat known = {};
  if (!opened.ok() || ::fstat(opened->get(), &known) != 0) return "";
  const off_t size = known.st_size;
  std::string text(kMost, '\0');
  const ssize_t got =
      ::pread(opened->get(), text.data(), text.size(), std::max(size - kMost, off_t{0}));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (size > kMost) text.erase(0, text.find('\n') + 1);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace faultline::run
