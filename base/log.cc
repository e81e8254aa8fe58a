#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/limits.h"

namespace faultline {

Status initLog(const std::string& who, const std::string& file) {
  errno = 0;
  try {
    std::vector<spdlog::sink_ptr> sinks{std::make_shared<spdlog::sinks::stderr_color_sink_mt>()};
    if (!file.empty()) {
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
    }
    auto logger = std::make_shared<spdlog::logger>(who, sinks.begin(), sinks.end());
    logger->set_pattern("%H:%M:%S.%e %^%l%$ %n: %v");
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(logger);
  } catch (const spdlog::spdlog_ex& error) {
    return errorf(Code::kIo, "cannot open the log {}: {}{}", file, error.what(),
                  limitBehind(errno));
  }
  return okStatus();
}

}  // namespace faultline
