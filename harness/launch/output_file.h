#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::launch {

/// A file of bounded size, filled from a pipe whose other end a program prints into.
class OutputFile {
 public:
  /// Makes or empties the file, and the pipe.
  static Result<OutputFile> create(const std::string& path, std::int64_t limit);

  int writeEnd() const { return write_end_.get(); }
  /// To be called when the program has it.
  void closeWriteEnd() { write_end_.reset(); }

  /// Readable when pump() has something to do; -1 when the pipe is over.
  int fd() const { return read_end_.get(); }
  /// Moves what is there, without waiting; what is beyond the limit is thrown away. An error is the
  /// file's: the disk is full, say. The pipe is then closed.
  Status pump();
  /// Something was thrown away.
  bool cut() const { return cut_; }
  const std::string& path() const { return path_; }

 private:
  Status append(const char* data, std::size_t size);

  std::string path_;
  std::int64_t left_ = 0;  // bytes that still may go into the file
  bool cut_ = false;
  UniqueFd file_;
  UniqueFd read_end_;
  UniqueFd write_end_;
};

}  // namespace faultline::launch
