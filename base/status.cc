#include "base/status.h"

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/limits.h"

namespace faultline {

std::string_view codeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid_argument";
    case Code::kNotFound:
      return "not_found";
    case Code::kAlreadyExists:
      return "already_exists";
    case Code::kPermissionDenied:
      return "permission_denied";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDeadlineExceeded:
      return "deadline_exceeded";
    case Code::kAborted:
      return "aborted";
    case Code::kIo:
      return "io";
    case Code::kNotRestored:
      return "not_restored";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

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
