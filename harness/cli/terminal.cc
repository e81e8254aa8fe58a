#include "harness/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace faultline::cli {
namespace {

/// All of it; a reader that has gone is nobody's loss.
void writeAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Terminal terminalOf(const Surroundings& surroundings) {
  Terminal terminal;
  if (surroundings.columns > 0) terminal.columns = surroundings.columns;
  const std::string_view term = surroundings.term == nullptr ? "" : surroundings.term;
  if (!surroundings.terminal || term.empty() || term == "dumb") return terminal;
  terminal.live = true;
  terminal.colour = surroundings.noColor == nullptr || *surroundings.noColor == '\0';
  return terminal;
}

Terminal terminalOf(int fd) {
  winsize size{};
  const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0;
  return terminalOf({.terminal = ::isatty(fd) == 1,
                     .term = std::getenv("TERM"),
                     .noColor = std::getenv("NO_COLOR"),
                     .columns = known ? size.ws_col : std::size_t{0}});
}

void LiveLine::print(const std::string& line) {
  clear();
  writeAll(fd_, line + "\n");
}

void LiveLine::show(const std::string& line) {
  if (!live_) return;
  // The last column stays free: many terminals begin a new line behind it.
  const std::string text = line.substr(0, columns_ > 1 ? columns_ - 1 : 0);
  const std::string rest(shown_ > text.size() ? shown_ - text.size() : 0, ' ');
  writeAll(fd_, "\r" + text + rest);
  shown_ = text.size();
}

void LiveLine::clear() {
  if (shown_ == 0) return;
  writeAll(fd_, "\r" + std::string(shown_, ' ') + "\r");
  shown_ = 0;
}

}  // namespace faultline::cli
