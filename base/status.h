#pragma once

#include <fmt/format.h>

#include <cassert>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/enum_names.h"

namespace faultline {

/// What kind of thing went wrong. Callers branch on the code, people read the message.
enum class Code {
  kOk,
  kInvalidArgument,   ///< the caller asked for something that makes no sense
  kNotFound,          ///< the named thing does not exist
  kAlreadyExists,     ///< the named thing is there already and is not ours
  kPermissionDenied,  ///< a privilege is missing
  kUnsupported,       ///< this machine or this build cannot do it
  kUnavailable,       ///< a peer or resource is gone; trying again later may help
  kDeadlineExceeded,  ///< it did not happen within its budget
  kAborted,           ///< given up because somebody else failed or asked to stop
  kIo,                ///< the operating system refused or failed
  kNotRestored,       ///< a change of ours could not be taken back: something is left damaged
  kInternal,          ///< an invariant of ours is broken: a bug
};

std::span<const EnumName<Code>> namesOf(Code which);
/// The code's name in the words of messages and results, e.g. "permission_denied".
std::string_view codeName(Code code);

/// Success, or a code with a message that says what was attempted, on what, what happened, and
/// what the user can do. Used wherever clean-up must go on after an error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {
    assert(code != Code::kOk);
  }

  /// An error from `errno` (or a positive errno value) while doing `attempt`.
  static Status fromErrno(int error, std::string_view attempt);

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same error, with what the caller was doing put in front: "context: message".
  Status withContext(std::string_view context) const;

  /// "code: message", for logs.
  std::string toString() const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

inline Status okStatus() { return Status(); }

template <typename... Args>
Status errorf(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

/// A value or the error that prevented it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}                                        // NOLINT
  Result(Status status) : state_(std::move(status)) { assert(!this->status().ok()); }  // NOLINT

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  /// The error; ok() when there is a value.
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }

  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

#define FAULTLINE_CONCAT_INNER(a, b) a##b
#define FAULTLINE_CONCAT(a, b) FAULTLINE_CONCAT_INNER(a, b)

/// Returns from the calling function with the error of `expression`, if it is one.
#define RETURN_IF_ERROR(expression)                                           \
  do {                                                                        \
    if (auto status_of_expression = (expression); !status_of_expression.ok()) \
      return status_of_expression;                                            \
  } while (false)

/// `declaration = value of expression`, or returns its error.
#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_INNER(FAULTLINE_CONCAT(result_of_line_, __LINE__), declaration, expression)
#define ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                   \
  if (!result.ok()) return result.status();                     \
  declaration = std::move(result).value()

}  // namespace faultline
