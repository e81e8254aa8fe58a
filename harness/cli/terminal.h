#pragma once

#include <cstddef>
#include <string>

/// What a stream is fit for: the one place that decides about colours, escape sequences and lines
/// that are written over.
namespace faultline::cli {

struct Terminal {
  bool colour = false;  ///< escape sequences that colour text
  bool live = false;    ///< a line may be written over (by a carriage return; no escape sequence)
  std::size_t columns = 80;
};

/// What is known of a stream and of the environment.
struct Surroundings {
  bool terminal = false;          ///< the stream is one
  const char* term = nullptr;     ///< TERM, or null
  const char* noColor = nullptr;  ///< NO_COLOR (no-color.org), or null
  std::size_t columns = 0;        ///< 0: not known
};

/// Nothing special is written to what is no terminal, or where TERM is missing or "dumb"; nothing
/// is coloured where NO_COLOR is not empty. Pure.
Terminal terminalOf(const Surroundings& surroundings);

/// The same of an open descriptor, as it is now.
Terminal terminalOf(int fd);

/// Lines on one descriptor, of which the last may be a live one that is written over.
class LiveLine {
 public:
  /// `live`: otherwise show() does nothing.
  LiveLine(int fd, bool live, std::size_t columns) : fd_(fd), live_(live), columns_(columns) {}
  ~LiveLine() { clear(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  bool live() const { return live_; }
  /// A line that stays.
  void print(const std::string& line);
  /// Takes the place of the live line that is there; cut to the terminal's width.
  void show(const std::string& line);
  /// Blanks the live line.
  void clear();

 private:
  int fd_;
  bool live_;
  std::size_t columns_;
  std::size_t shown_ = 0;  // columns of the live line
};

}  // namespace faultline::cli
