#include "injector/safety/entry.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/json.h"
#include "base/json_fields.h"

namespace faultline::safety {
namespace {

constexpr int kVersion = 1;
constexpr const char* kWhat = "faultline_strike";

/// FNV-1a: a file that was cut or has rotted is told from a whole one; nobody is kept from forging.
std::string checkOf(std::string_view text) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char byte : text) {
    sum ^= static_cast<unsigned char>(byte);
    sum *= 0x100000001b3;
  }
  return fmt::format("{:016x}", sum);
}

std::string textOf(const Json& entry) {
  return entry.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string encode(const Entry& entry) {
  const Json written = JsonWriter<Json>::write(entry);
  const Json file{{kWhat, written}, {"check", checkOf(textOf(written))}};
  return textOf(file) + "\n";
}

Result<Entry> decode(std::string_view text) {
  ASSIGN_OR_RETURN(const Json file, parseJson<Json>(text));
  if (!file.is_object() || !file.contains(kWhat) || !file[kWhat].is_object()) {
    return errorf(Code::kInvalidArgument, "it is no journal entry");
  }
  const Json& written = file[kWhat];
  const auto version = written.find("version");
  if (version != written.end() && version->is_number_integer() && *version > kVersion) {
    return errorf(Code::kInvalidArgument,
                  "it is of version {}, of a later faultline: use that one to undo it",
                  version->dump());
  }
  Entry entry;
  RETURN_IF_ERROR((JsonReader<Json, Strictness::kExact>::read(written, std::string(kWhat), entry)));
  if (encode(entry) != text) {
    return errorf(Code::kInvalidArgument, "its check does not fit: it was changed or is damaged");
  }
  if (entry.bootId.empty() || entry.holder.started == 0) {
    return errorf(Code::kInvalidArgument, "it does not say in which boot, or by which process");
  }
  return entry;
}

bool isOverdue(const Entry& entry, TimePoint now) { return now > entry.endsMonotonic + kUndoGrace; }

std::string inWords(const Entry& entry) {
  return fmt::format("{} of {} by {}, since {:%Y-%m-%d %H:%M:%S} UTC, held by process {}",
                     entry.kind, nameOf(entry.target), entry.user, fmt::gmtime(entry.beganAt),
                     entry.holder.pid);
}

}  // namespace faultline::safety
