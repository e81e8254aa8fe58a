#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/json_fields.h"
#include "base/number_range.h"

/// What the processes of the bench say to each other (docs/wire.md). Each direction of a protocol
/// is a variant of structs. On the way a message is the JSON object that base/json_fields.h makes
/// of it; whoever reads one refuses what is missing, unknown or of another type.
namespace faultline::wire {

/// Of what ranks and guards are told and say, which transcripts keep. Goes up with every change of
/// a message.
inline constexpr int kVersion = 3;
/// The same of all others: agents, holders of faults, guests that boot, machine rooms.
inline constexpr int kAgentVersion = 5;

/// The first message of a protocol has its `version`, which is looked at before anything else:
/// kInvalidArgument, with both, when it is not `ours`.
Status checkVersion(const nlohmann::json& first, int ours = kVersion);

/// A Status.
struct Outcome {
  Code code = Code::kOk;
  std::string message{};

  static Outcome of(const Status& status) { return {status.code(), status.message()}; }
  Status status() const { return code == Code::kOk ? okStatus() : Status(code, message); }
};

template <typename V>
void visitFields(V& v, Of<Outcome> auto& outcome) {
  v.required("code", outcome.code);
  v.required("message", outcome.message);
}

/// Said for a process by whoever listens to it: it has ended without its last word.
struct Gone {
  static constexpr const char* kType = "gone";
  std::string message{};
};

template <typename V>
void visitFields(V& v, Of<Gone> auto& message) {
  v.required("message", message.message);
}

/// Whether a message is a Gone, which no process says of itself.
bool isGone(const nlohmann::json& message);

/// Whether T is one of these: for who handles each kind of message, or says that it does not.
template <typename T, typename... Ts>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Ts> || ...);

/// The object of a message, or of a struct that is one by itself.
template <typename T>
nlohmann::json toJson(const T& message) {
  return JsonWriter<nlohmann::json>::write(message);
}

/// kInvalidArgument, with the path of the field, for what is no T.
template <typename T>
Result<T> fromJson(const nlohmann::json& json) {
  T message;
  RETURN_IF_ERROR(
      (JsonReader<nlohmann::json, Strictness::kExact>::read(json, std::string(), message)));
  return message;
}

/// What a process says; kInvalidArgument for what only others say of it.
template <typename Protocol>
Result<Protocol> spoken(const nlohmann::json& message) {
  if (!isGone(message)) return fromJson<Protocol>(message);
  return errorf(Code::kInvalidArgument, "it says of itself that it is gone");
}

/// How many there are of what messages have indexes of (NumberRange::indexOf).
using Counts = std::map<std::string_view, std::int64_t>;

class IndexCheck {
 public:
  IndexCheck(const Counts& counts, std::string path) : counts_(counts), path_(std::move(path)) {}

  /// Of a struct; other values have no indexes inside.
  template <typename T>
  static Status check(const Counts& counts, const std::string& path, const T& value) {
    IndexCheck check(counts, path);
    if constexpr (requires { visitFields(check, value); }) visitFields(check, value);
    return check.status_;
  }
  template <typename T>
  static Status check(const Counts& counts, const std::string& path,
                      const std::optional<T>& value) {
    return value ? check(counts, path, *value) : okStatus();
  }
  template <typename T>
  static Status check(const Counts& counts, const std::string& path, const std::vector<T>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      RETURN_IF_ERROR(check(counts, fmt::format("{}[{}]", path, i), values[i]));
    }
    return okStatus();
  }

  template <typename T>
  void required(const char* key, const T& value) {
    if (status_.ok()) status_ = check(counts_, fmt::format("{}.{}", path_, key), value);
  }
  template <typename T>
  void required(const char* key, const T& value, NumberRange range) {
    if (!status_.ok() || range.indexOf == nullptr) return;
    range.most = static_cast<double>(counts_.at(range.indexOf)) - 1;
    status_ = RangeCheck::check(value, range, fmt::format("{}.{}", path_, key));
  }

 private:
  const Counts& counts_;
  const std::string path_;
  Status status_;
};

/// kInvalidArgument, with the path of the field, for an index of what there is not.
template <typename... Ts>
Status checkIndexes(const std::variant<Ts...>& message, const Counts& counts) {
  return std::visit(
      [&]<typename T>(const T& one) { return IndexCheck::check(counts, T::kType, one); }, message);
}

/// The first message of a Protocol, which must be a First of our version, that of its default.
template <typename Protocol, typename First>
Result<First> firstFromJson(const nlohmann::json& json) {
  RETURN_IF_ERROR(checkVersion(json, First{}.version));
  ASSIGN_OR_RETURN(Protocol message, fromJson<Protocol>(json));
  if (First* const first = std::get_if<First>(&message)) return std::move(*first);
  return errorf(Code::kInvalidArgument, "the first message must be of type {}", First::kType);
}

/// The JSON Schema of all protocols; kept in wire/schema.json, with that of the configuration of a
/// rank (workload/rank_config.h).
nlohmann::ordered_json schema();

}  // namespace faultline::wire
