#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/json_fields.h"

/// What the processes of the bench say to each other (docs/wire.md). Each direction of a protocol
/// is a variant of structs. On the way a message is the JSON object that base/json_fields.h makes
/// of it; whoever reads one refuses what is missing, unknown or of another type.
namespace faultline::wire {

/// Of what ranks and guards are told and say, which transcripts keep. Goes up with every change of
/// a message.
inline constexpr int kVersion = 2;
/// The same of all others: agents, holders of faults, guests that boot, machine rooms.
inline constexpr int kAgentVersion = 3;

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
inline constexpr bool isOneOf = (std::is_same_v<T, Ts> || ...);

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

/// The first message of a Protocol, which must be a First of our version, that of its default.
template <typename Protocol, typename First>
Result<First> firstFromJson(const nlohmann::json& json) {
  RETURN_IF_ERROR(checkVersion(json, First{}.version));
  ASSIGN_OR_RETURN(Protocol message, fromJson<Protocol>(json));
  if (First* const first = std::get_if<First>(&message)) return std::move(*first);
  return errorf(Code::kInvalidArgument, "the first message must be of type {}", First::kType);
}

/// The JSON Schema of all protocols; kept in wire/schema.json.
nlohmann::ordered_json schema();

}  // namespace faultline::wire
