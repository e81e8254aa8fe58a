#include "harness/agent/brought_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

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
// As of what a program prints.
constexpr std::int64_t kMostOfLines = std::int64_t{16} << 20;

/// 0: it is not there.
std::int64_t sizeOf(const std::string& path) {
  struct stat known = {};
  return ::stat(path.c_str(), &known) == 0 ? known.st_size : 0;
}

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
    RETURN_IF_ERROR(step(index, wrote).status());
  }
  return okStatus();
}

void BroughtFiles::beginAll(bool over) {
  pass_.clear();
  for (int index = 0; index < std::ssize(files_); ++index) {
    const File& file = files_[static_cast<std::size_t>(index)];
    if (file.how == wire::Bringing::kAtEnd && !over) continue;
    pass_.push_back({index, sizeOf(file.path) - offsetOf(file)});
  }
}

Result<bool> BroughtFiles::bringSome(const Wrote& wrote) {
  if (pass_.empty()) return true;
  Part& part = pass_.front();
  ASSIGN_OR_RETURN(const Step step, this->step(part.file, wrote));
  part.left -= step.bytes;
  if (step.another && !part.another) {
    part.another = true;
    part.left = sizeOf(files_[static_cast<std::size_t>(part.file)].path);
  } else if (step.bytes == 0 || part.left <= 0) {
    pass_.pop_front();
  }
  return pass_.empty();
}

std::vector<std::string> BroughtFiles::takeCut() {
  std::vector<std::string> cut;
  for (File& file : files_) {
    if (file.how != wire::Bringing::kLines || file.brought < kMostOfLines || file.toldCut) continue;
    file.toldCut = true;
    cut.push_back(file.path);
  }
  return cut;
}

std::int64_t BroughtFiles::offsetOf(const File& file) {
  return file.how == wire::Bringing::kLines ? file.lines.offset() : file.brought;
}

Result<BroughtFiles::Step> BroughtFiles::step(int index, const Wrote& wrote) {
  File& file = files_[static_cast<std::size_t>(index)];
  const Result<UniqueFd> opened = openInput(file.path);
  if (!opened.ok()) return Step{};
  if (!file.told) {
    file.told = true;
    RETURN_IF_ERROR(wrote(index, {}));
  }
  const bool lines = file.how == wire::Bringing::kLines;
  if (file.brought >= (lines ? kMostOfLines : kMost)) return Step{};
  buffer_.resize(lines ? NewLines::kStep : kStep);
  const ssize_t got = ::pread(opened->get(), buffer_.data(), buffer_.size(), offsetOf(file));
  buffer_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  Step step;
  if (lines) {
    std::string news;
    for (const std::string_view line : file.lines.in(buffer_)) {
      news += line;
      news += '\n';
    }
    step.another = file.lines.another();
    buffer_ = std::move(news);
  }
  if (buffer_.empty()) return step;
  step.bytes = std::ssize(buffer_);
  file.brought += step.bytes;
  RETURN_IF_ERROR(wrote(index, buffer_));
  return step;
}

}  // namespace faultline::agent
