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

bool isLastWord(const wire::FromGuard& said) {
  return std::holds_alternative<wire::GuardFinished>(said) ||
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
                                     int logFd,
                                     const std::function<void(const std::string&)>& note) {
  wire::StartJob own = message;
  own.guard.networkNamespace = networkFile;
  std::optional<JobFolder> folder;
  if (!own.folder.empty()) {
    for (const std::string& what : JobFolder::sweep(own.folder)) note(what);
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
  return GuardedJob(std::move(own), std::move(folder), std::move(guard));
}

Status GuardedJob::bring(bool all, bool over, const Tell& tell) {
  const auto wrote = [&](int file, std::string_view bytes) {
    return tell(wire::JobWrote{message_.job, file, {std::string(bytes)}});
  };
  return all ? files_.lookAtAll(over, wrote) : files_.look(wrote);
}

Result<bool> GuardedJob::pump(const Tell& tell) {
  for (;;) {
    Result<std::optional<json>> message = guard_.messages().receive();
    if (message.ok() && !*message) break;
    Result<wire::FromGuard> said = message.ok() ? wire::spoken<wire::FromGuard>(**message)
                                                : Result<wire::FromGuard>(message.status());
    if (!said.ok()) {
      const bool broken = message.ok();
      if (broken) kill();  // so that nothing is written any more
      const std::string how = launch::howItEnded(guard_);
      RETURN_IF_ERROR(lastWord(wire::Gone{broken ? said.status().message() : how}, tell));
      return true;
    }
    if (isLastWord(*said)) {
      RETURN_IF_ERROR(lastWord(*std::move(said), tell));
      return true;
    }
    RETURN_IF_ERROR(bring(/*all=*/true, /*over=*/false, tell));
    RETURN_IF_ERROR(tell(wire::GuardSaid{message_.job, *std::move(said)}));
  }
  if (now() >= files_.due()) RETURN_IF_ERROR(bring(/*all=*/false, /*over=*/false, tell));
  return false;
}

/// After all that was written, and when nothing is left; before it what was printed, where that is
/// wanted: also of one that has failed.
Status GuardedJob::lastWord(wire::FromGuard said, const Tell& tell) {
  RETURN_IF_ERROR(bring(/*all=*/true, /*over=*/true, tell));
  if (folder_) {
    (void)launch::howItEnded(guard_);
    const Status removed = folder_->remove();
    if (!removed.ok()) RETURN_IF_ERROR(tell(wire::Logged{removed.message() + "\n"}));
  }
  RETURN_IF_ERROR(tell(wire::GuardSaid{message_.job, std::move(said)}));
  if (!message_.read) return okStatus();
  wire::JobOutput output{.job = message_.job};
  for (const wire::GuardedProgram& program : message_.guard.programs) {
    output.programs.push_back({fileText(program.stdoutPath), fileText(program.stderrPath)});
    ::unlink(program.stdoutPath.c_str());
    ::unlink(program.stderrPath.c_str());
  }
  return tell(output);
}

}  // namespace faultline::agent
