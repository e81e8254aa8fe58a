#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/json_fields.h"
#include "wire/message.h"

/// Between the controller and the guard of a node (harness/agent/guard.h). Moments are those of
/// the guard's monotonic clock.
namespace faultline::wire {

/// A program that is not ours, as a node's guard starts it.
struct GuardedProgram {
  std::string executable{};              ///< path
  std::vector<std::string> arguments{};  ///< arguments[0] is the program's own name, as usual
  /// In addition to the guard's environment, or instead of what is there by that name.
  std::map<std::string, std::string> environment{};
  std::string workingDirectory{};  ///< empty: the guard's
  std::string stdoutPath{};        ///< file that what it prints goes to; emptied first
  std::string stderrPath{};
};

/// The first message to a guard: what to start, and where.
struct GuardJob {
  static constexpr const char* kType = "job";
  int version = kVersion;
  /// File of the network namespace in which the programs run; the guard itself stays outside, so
  /// that what strikes the node's processes does not strike it. Empty: the guard's own.
  std::string networkNamespace{};
  /// Bytes of each file: what a program prints beyond that is read and thrown away.
  std::int64_t outputLimit = 0;
  std::vector<GuardedProgram> programs{};
};

/// All programs run.
struct GuardStarted {
  static constexpr const char* kType = "started";
  TimePoint at{};
};

/// A program has ended.
struct GuardedEnded {
  static constexpr const char* kType = "ended";
  int program = 0;  ///< its place in the job
  TimePoint at{};
  int code = 0;
  int signal = 0;  ///< 0: it ended by itself, with `code`
};

/// All have, nothing of them is left, and what they printed is in the files.
struct GuardFinished {
  static constexpr const char* kType = "finished";
  std::vector<std::string> cut{};  ///< files that were to become larger than they may
};

/// The guard cannot do its work, and ends.
struct GuardError {
  static constexpr const char* kType = "error";
  Outcome outcome{};
};

using FromGuard = std::variant<GuardStarted, GuardedEnded, GuardFinished, GuardError, Gone>;

/// SIGTERM to all processes, and SIGKILL after `grace`.
struct EndPrograms {
  static constexpr const char* kType = "end";
  Duration grace{};
};

using ToGuard = std::variant<GuardJob, EndPrograms>;

// --- fields ---

template <typename V>
void visitFields(V& v, Of<GuardedProgram> auto& program) {
  v.required("executable", program.executable);
  v.required("arguments", program.arguments);
  v.required("environment", program.environment);
  v.required("working_directory", program.workingDirectory);
  v.required("stdout", program.stdoutPath);
  v.required("stderr", program.stderrPath);
}

template <typename V>
void visitFields(V& v, Of<GuardJob> auto& job) {
  v.required("version", job.version);
  v.required("network_namespace", job.networkNamespace);
  v.required("output_limit", job.outputLimit);
  v.required("programs", job.programs);
}

template <typename V>
void visitFields(V& v, Of<GuardStarted> auto& message) {
  v.required("at", message.at);
}

template <typename V>
void visitFields(V& v, Of<GuardedEnded> auto& message) {
  v.required("program", message.program);
  v.required("at", message.at);
  v.required("code", message.code);
  v.required("signal", message.signal);
}

template <typename V>
void visitFields(V& v, Of<GuardFinished> auto& message) {
  v.required("cut", message.cut);
}

template <typename V>
void visitFields(V& v, Of<GuardError> auto& message) {
  v.required("outcome", message.outcome);
}

/// Of an error.
Status checkFields(const GuardError& error);

template <typename V>
void visitFields(V& v, Of<EndPrograms> auto& message) {
  v.required("grace", message.grace);
}

}  // namespace faultline::wire
