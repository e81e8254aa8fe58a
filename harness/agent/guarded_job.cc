#include "harness/agent/guarded_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>
#include <variant>

#include "base/executable.h"
#include "base/file_text.h"
#include "harness/agent/guard.h"

namespace faultline::agent {
namespace {

using nlohmann::json;

/// In it, the folders of what the programs print.
Result<JobFolder> makeFolder(const wire::StartJob& message) {
  ASSIGN_OR_RETURN(JobFolder folder, JobFolder::make(message.folder));
  for (const wire::GuardedProgram& program : message.guard.programs) {
    std::error_code error;
    const std::filesystem::path own = std::filesystem::path(program.stdoutPath).parent_path();
    std::filesystem::create_directories(own, error);
    if (error) return errorf(Code::kIo, "make the folder {}: {}", own.string(), error.message());
  }
  return folder;
}

// Then others have their turn: their words, leases, counters.
constexpr Duration kTurn = 20ms;
// What is swept fast is told before the job begins.
constexpr Duration kSweepPatience = 500ms;

bool isLastWord(const wire::FromGuard& said) {
  return std::holds_alternative<wire::Gone>(said) ||
         std::holds_alternative<wire::GuardFinished>(said) ||
         std::holds_alternative<wire::GuardError>(said);
}

}  // namespace

Result<std::string> executableOf(const wire::GuardedProgram& program) {
  if (!program.executable.empty()) return program.executable;
  if (program.arguments.empty()) {
    return errorf(Code::kInvalidArgument, "a program without a name");
  }
  const auto own = program.environment.find("PATH");
  const char* const inherited = std::getenv("PATH");
  const std::string path = own != program.environment.end() ? own->second
                           : inherited != nullptr           ? inherited
                                                            : "/usr/bin:/bin";
  return findExecutable(program.arguments.front(), program.workingDirectory, path);
}

std::vector<std::string> whatIsMissing(const wire::CheckJob& job) {
  std::vector<std::string> missing;
  const auto say = [&](const std::string& what) {
    if (missing.empty() || missing.back() != what) missing.push_back(what);
  };
  for (const wire::GuardedProgram& program : job.guard.programs) {
    const Result<std::string> found = executableOf(program);
    if (!found.ok()) say(found.status().message());
  }
  for (const std::string& file : job.files) {
    if (::access(file.c_str(), R_OK) != 0) {
      say(
          fmt::format("there is no {}, or it cannot be read: it must be at the same path as on the "
                      "machine of the controller",
                      file));
    }
  }
  return missing;
}

Result<GuardedJob> GuardedJob::start(const wire::StartJob& message, const std::string& networkFile,
                                     int logFd) {
  wire::StartJob own = message;
  own.guard.networkNamespace = networkFile;
  std::optional<JobFolder> folder;
  std::optional<launch::Process> sweeper;
  if (!own.folder.empty()) {
    ASSIGN_OR_RETURN(launch::Process sweeping, JobFolder::startSweeper(own.folder));
    sweeper.emplace(std::move(sweeping));
    (void)sweeper->waitFor(kSweepPatience);
    ASSIGN_OR_RETURN(JobFolder made, makeFolder(own));
    folder.emplace(std::move(made));
  }
  for (wire::GuardedProgram& program : own.guard.programs) {
    ASSIGN_OR_RETURN(program.executable, executableOf(program));
  }
  launch::SpawnOptions options;
  options.body = guardMain;
  options.own_process_namespace = true;
  options.stderr_fd = logFd;
  options.first_message = wire::toJson(wire::ToGuard(own.guard));
  ASSIGN_OR_RETURN(launch::Process guard, launch::Process::spawn(options));
  if (folder) RETURN_IF_ERROR(folder->outliveUs(guard.pidFd()));
  return GuardedJob(std::move(own), std::move(folder), std::move(sweeper), std::move(guard));
}

TimePoint GuardedJob::due() const {
  if (word_) return TimePoint();
  return removing_ ? TimePoint::max() : files_.due();
}

void GuardedJob::addTo(std::vector<pollfd>& waiting) {
  waiting.push_back({removing_ ? folder_->removerFd() : guard_.messages().fd(), POLLIN, 0});
  if (sweeper_) waiting.push_back({sweeper_->messages().fd(), POLLIN, 0});
}

Status GuardedJob::log(const std::string& what, const Tell& tell) const {
  return tell(wire::Logged{message_.job, what + "\n"});
}

Status GuardedJob::hearSweeper(const Tell& tell) {
  while (sweeper_) {
    const auto message = sweeper_->messages().receive();
    if (message.ok() && !*message) break;
    if (!message.ok() || !(*message)->is_string()) {
      sweeper_.reset();
      break;
    }
    RETURN_IF_ERROR(log((*message)->get<std::string>(), tell));
  }
  return okStatus();
}

std::optional<wire::FromGuard> GuardedJob::nextWord() {
  Result<std::optional<json>> message = guard_.messages().receive();
  if (message.ok() && !*message) return std::nullopt;
  if (!message.ok()) return wire::Gone{launch::howItEnded(guard_)};
  Result<wire::FromGuard> said = wire::spoken<wire::FromGuard>(**message);
  if (said.ok()) return *std::move(said);
  kill();  // so that nothing is written any more
  (void)launch::howItEnded(guard_);
  return wire::Gone{said.status().message()};
}

Result<bool> GuardedJob::pump(const Tell& tell) {
  RETURN_IF_ERROR(hearSweeper(tell));
  if (removing_) return isRemoved(tell);
  const auto wrote = [&](int file, std::string_view bytes) {
    return tell(wire::JobWrote{message_.job, file, {std::string(bytes)}});
  };
  for (const TimePoint turn = now() + kTurn; now() < turn;) {
    if (!word_) {
      word_ = nextWord();
      if (!word_) break;
      files_.beginAll(/*over=*/isLastWord(*word_));
    }
    ASSIGN_OR_RETURN(const bool all, files_.bringSome(wrote));
    if (!all) continue;
    wire::FromGuard said = *std::exchange(word_, std::nullopt);
    if (isLastWord(said)) return lastWord(std::move(said), tell);
    RETURN_IF_ERROR(tell(wire::GuardSaid{message_.job, std::move(said)}));
  }
  if (!word_ && now() >= files_.due()) RETURN_IF_ERROR(files_.look(wrote));
  RETURN_IF_ERROR(tellCut(tell));
  return false;
}

Status GuardedJob::tellCut(const Tell& tell) {
  for (const std::string& path : files_.takeCut()) {
    RETURN_IF_ERROR(
        log(path + ": there are too many lines, and those from here on do not come", tell));
  }
  return okStatus();
}

Result<bool> GuardedJob::isRemoved(const Tell& tell) {
  const std::optional<Status> removed = folder_->removed();
  if (!removed) return false;
  folder_.reset();
  if (!removed->ok()) RETURN_IF_ERROR(log(removed->message(), tell));
  return true;
}

/// After all that was written; before it what was printed, where that is wanted: also of one that
/// has failed. Whether nothing is left then.
Result<bool> GuardedJob::lastWord(wire::FromGuard said, const Tell& tell) {
  RETURN_IF_ERROR(tellCut(tell));
  RETURN_IF_ERROR(tell(wire::GuardSaid{message_.job, std::move(said)}));
  if (message_.read) RETURN_IF_ERROR(tellOutput(tell));
  if (!folder_) return true;
  // It may be large: nobody waits for that.
  folder_->beginRemove();
  removing_ = true;
  return isRemoved(tell);
}

Status GuardedJob::tellOutput(const Tell& tell) {
  wire::JobOutput output{.job = message_.job};
  for (const wire::GuardedProgram& program : message_.guard.programs) {
    output.programs.push_back({fileText(program.stdoutPath), fileText(program.stderrPath)});
    ::unlink(program.stdoutPath.c_str());
    ::unlink(program.stderrPath.c_str());
  }
  return tell(output);
}

}  // namespace faultline::agent
