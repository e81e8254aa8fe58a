#include "base/status.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/limits.h"

namespace faultline {

std::span<const EnumName<Code>> namesOf(Code /*which*/) {
  static constexpr EnumName<Code> kNames[] = {{Code::kOk, "ok"},
                                              {Code::kInvalidArgument, "invalid_argument"},
                                              {Code::kNotFound, "not_found"},
                                              {Code::kAlreadyExists, "already_exists"},
                                              {Code::kPermissionDenied, "permission_denied"},
                                              {Code::kUnsupported, "unsupported"},
                                              {Code::kUnavailable, "unavailable"},
                                              {Code::kDeadlineExceeded, "deadline_exceeded"},
                                              {Code::kAborted, "aborted"},
                                              {Code::kIo, "io"},
                                              {Code::kNotRestored, "not_restored"},
                                              {Code::kInternal, "internal"}};
  return kNames;
}

std::string_view codeName(Code code) { return enumName(code); }

namespace {

Code codeOfErrno(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return Code::kPermissionDenied;
    case ENOENT:
    case ENODEV:
    case ESRCH:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EINVAL:
      return Code::kInvalidArgument;
    case EOPNOTSUPP:
    case ENOSYS:
      return Code::kUnsupported;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return Code::kUnavailable;
    case ETIMEDOUT:
      return Code::kDeadlineExceeded;
    default:
      return Code::kIo;
  }
}

}  // namespace

Status Status::fromErrno(int error, std::string_view attempt) {
  return Status(
      codeOfErrno(error),
      fmt::format("{}: {}{}", attempt, std::generic_category().message(error), limitBehind(error)));
}

Status Status::withContext(std::string_view context) const {
  if (ok()) return *this;
  return Status(code_, fmt::format("{}: {}", context, message_));
}

std::string Status::toString() const {
  return ok() ? "ok" : fmt::format("{}: {}", codeName(code_), message_);
}

}  // namespace faultline
