#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <cerrno>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/printable.h"

namespace faultline {

namespace {

/// The text of an entry, in which there may be words of programs and peers.
class PrintableText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& entry, const std::tm& /*time*/,
              spdlog::memory_buf_t& line) override {
    const std::string text = printable({entry.payload.data(), entry.payload.size()});
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableText>();
  }
};

}  // namespace

Status initLog(const std::string& who, const std::string& file) {
  errno = 0;
  try {
    std::vector<spdlog::sink_ptr> sinks{std::make_shared<spdlog::sinks::stderr_color_sink_mt>()};
    if (!file.empty()) {
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
    }
    auto logger = std::make_shared<spdlog::logger>(who, sinks.begin(), sinks.end());
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<PrintableText>('*').set_pattern("%H:%M:%S.%e %^%l%$ %n: %*");
    logger->set_formatter(std::move(formatter));
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(logger);
  } catch (const spdlog::spdlog_ex& error) {
    return errorf(Code::kIo, "cannot open the log {}: {}{}", file, error.what(),
                  limitBehind(errno));
  }
  return okStatus();
}

}  // namespace faultline
