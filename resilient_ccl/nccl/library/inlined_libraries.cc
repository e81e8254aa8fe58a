// fmt and spdlog, compiled into the plugin: the rooms call what usually stands in their shared
// libraries, which may be others, or none, in the program that loads it. What is missing here the
// linker tells (--no-undefined).

#include <fmt/format-inl.h>
#include <spdlog/common-inl.h>
#include <spdlog/details/backtracer-inl.h>
#include <spdlog/details/file_helper-inl.h>
#include <spdlog/details/log_msg-inl.h>
#include <spdlog/details/log_msg_buffer-inl.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/os-inl.h>
#include <spdlog/details/periodic_worker-inl.h>
#include <spdlog/details/registry-inl.h>
#include <spdlog/logger-inl.h>
#include <spdlog/pattern_formatter-inl.h>
#include <spdlog/sinks/ansicolor_sink-inl.h>
#include <spdlog/sinks/base_sink-inl.h>
#include <spdlog/sinks/basic_file_sink-inl.h>
#include <spdlog/sinks/sink-inl.h>
#include <spdlog/spdlog-inl.h>

#include <mutex>

FMT_BEGIN_NAMESPACE
namespace detail {
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
}  // namespace detail
FMT_END_NAMESPACE

namespace spdlog::sinks {
template class base_sink<std::mutex>;
template class base_sink<details::null_mutex>;
template class basic_file_sink<std::mutex>;
template class ansicolor_sink<details::console_mutex>;
template class ansicolor_stdout_sink<details::console_mutex>;
template class ansicolor_stderr_sink<details::console_mutex>;
}  // namespace spdlog::sinks
