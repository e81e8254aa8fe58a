#include "harness/agent/brought_files.h"

#include <unistd.h>

#include <cstddef>

#include "base/input_file.h"

namespace faultline::agent {
namespace {

// As often as the controller looks at files of its own machine.
constexpr Duration kLinesInterval = 1ms;
// What is printed is for people, and for numbers that are asked for at the end.
constexpr Duration kGrowingInterval = 20ms;
constexpr std::size_t kStep = 32 << 10;
static_assert(kStep >= NewLines::kStep);
// The controller reads no more of a file that holds a number.
constexpr std::int64_t kMost = (std::int64_t{64} << 20) + 1;

}  // namespace

BroughtFiles::BroughtFiles(const std::vector<wire::BroughtFile>& files) {
  for (const wire::BroughtFile& file : files) files_.push_back({file.path, file.how});
  if (!files_.empty()) due_ = now();
}

Status BroughtFiles::look(const Wrote& wrote) {
  const TimePoint time = now();
  const bool growing = time >= growingDue_;
  if (growing) growingDue_ = time + kGrowingInterval;
  due_ = growingDue_;
  for (int index = 0; index < std::ssize(files_); ++index) {
    const wire::Bringing how = files_[static_cast<std::size_t>(index)].how;
    if (how == wire::Bringing::kLines) due_ = time + kLinesInterval;
    if (how == wire::Bringing::kAtEnd || (how == wire::Bringing::kGrowing && !growing)) continue;
    RETURN_IF_ERROR(lookAt(index, /*all=*/false, wrote));
  }
  return okStatus();
}

Status BroughtFiles::lookAtAll(bool over, const Wrote& wrote) {
  for (int index = 0; index < std::ssize(files_); ++index) {
    const wire::Bringing how = files_[static_cast<std::size_t>(index)].how;
    if (how == wire::Bringing::kAtEnd && !over) continue;
    RETURN_IF_ERROR(lookAt(index, /*all=*/true, wrote));
  }
  return okStatus();
}

Status BroughtFiles::lookAt(int index, bool all, const Wrote& wrote) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, step(index, wrote));
    if (!more || !all) return okStatus();
  }
}

/// Whether there may be more.
Result<bool> BroughtFiles::step(int index, const Wrote& wrote) {
  File& file = files_[static_cast<std::size_t>(index)];
  const Result<UniqueFd> opened = openInput(file.path);
  if (!opened.ok()) return false;
  if (!file.told) {
    file.told = true;
    RETURN_IF_ERROR(wrote(index, {}));
  }
  const bool lines = file.how == wire::Bringing::kLines;
  const std::int64_t offset = lines ? file.lines.offset() : file.offset;
  buffer_.resize(lines ? NewLines::kStep : kStep);
  const ssize_t got = ::pread(opened->get(), buffer_.data(), buffer_.size(), offset);
  buffer_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (lines) {
    std::string news;
    for (const std::string_view line : file.lines.in(buffer_)) {
      news += line;
      news += '\n';
    }
    if (!news.empty()) RETURN_IF_ERROR(wrote(index, news));
    return !news.empty() || file.lines.another();
  }
  if (buffer_.empty() || file.offset >= kMost) return false;
  file.offset += static_cast<std::int64_t>(buffer_.size());
  RETURN_IF_ERROR(wrote(index, buffer_));
  return true;
}

}  // namespace faultline::agent
