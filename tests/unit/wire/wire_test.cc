#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.h"
#include "tests/support/json_schema.h"
#include "wire/guard.h"
#include "wire/guest.h"
#include "wire/rank.h"

// Every message of every protocol: comes back as it was, fits the schema, and is refused when a
// field is missing, unknown or of another type.

namespace faultline::wire {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// An instance in which every list, map and optional has an entry, so that all fields are there.
class Filler {
 public:
  template <typename T>
  static void fill(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = 7;
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = "words";
    } else if constexpr (std::is_same_v<T, TimePoint>) {
      value = TimePoint(5s);
    } else if constexpr (std::is_same_v<T, Duration>) {
      value = 3us;
    } else if constexpr (!std::is_enum_v<T>) {
      Filler filler;
      visitFields(filler, value);
    }
  }
  template <typename T>
  static void fill(std::optional<T>& value) {
    fill(value.emplace());
  }
  template <typename T>
  static void fill(std::vector<T>& values) {
    values.resize(1);
    fill(values[0]);
  }
  template <typename T>
  static void fill(std::map<std::string, T>& values) {
    fill(values["name"]);
  }
  template <typename First, typename... More>
  static void fill(std::variant<First, More...>& value) {
    fill(value.template emplace<First>());
  }
  template <typename T>
  void required(const char* /*key*/, T& value) {
    fill(value);
  }
};

struct Example {
  std::string protocol;  ///< its name in the schema
  json message;
  std::string (*whyNot)(const json&);  ///< empty: it is one, and comes back as it was
};

template <typename Protocol>
std::string whyNot(const json& message) {
  const auto read = fromJson<Protocol>(message);
  if (!read.ok()) return read.status().message();
  return toJson(*read) == message ? "" : "it comes back as another one";
}

template <typename... Ts>
void addExamples(std::vector<Example>& all, const std::string& protocol,
                 const std::variant<Ts...>& /*which*/) {
  using Protocol = std::variant<Ts...>;
  const auto add = [&]<typename T>(T message) {
    Filler::fill(message);
    all.push_back({protocol, toJson(Protocol(std::move(message))), whyNot<Protocol>});
  };
  (add(Ts{}), ...);
}

std::vector<Example> examples() {
  std::vector<Example> all;
  addExamples(all, "controller_to_rank", ToRank{});
  addExamples(all, "rank_to_controller", FromRank{});
  addExamples(all, "controller_to_guard", ToGuard{});
  addExamples(all, "guard_to_controller", FromGuard{});
  addExamples(all, "controller_to_guest", ToGuest{});
  addExamples(all, "guest_to_controller", FromGuest{});
  addExamples(all, "controller_to_holder", ToHolder{});
  addExamples(all, "holder_to_controller", FromHolder{});
  addExamples(all, "controller_to_machine_room", ToRoom{});
  addExamples(all, "machine_room_to_controller", FromRoom{});
  return all;
}

/// All places of objects and of their keys, at any depth.
void collect(const json& value, const json::json_pointer& at,
             std::vector<json::json_pointer>& objects, std::vector<json::json_pointer>& keys) {
  if (value.is_object()) objects.push_back(at);
  if (!value.is_structured()) return;
  for (const auto& [key, inner] : value.items()) {
    const json::json_pointer place =
        value.is_object() ? at / key : at / static_cast<std::size_t>(std::stoul(key));
    if (value.is_object()) keys.push_back(place);
    collect(inner, place, objects, keys);
  }
}

TEST(WireTest, EveryMessageComesBackAsItWas) {
  for (const Example& example : examples()) {
    EXPECT_EQ(example.whyNot(example.message), "") << example.message;
  }
}

/// Of a list or a map by free names any entry may be missing or be added.
bool isFree(const json& message, const json::json_pointer& place) {
  return place.back() == "name" || message.at(place.parent_pointer()).contains("name");
}

TEST(WireTest, AMissingAnUnknownOrAMistypedFieldIsRefusedAndNamed) {
  int changes = 0;
  for (const Example& example : examples()) {
    std::vector<json::json_pointer> objects, keys;
    collect(example.message, json::json_pointer(), objects, keys);
    for (const json::json_pointer& place : keys) {
      json mistyped = example.message;
      mistyped[place] = example.message[place].is_array() ? json("x") : json::array({1});
      EXPECT_THAT(example.whyNot(mistyped), AllOf(HasSubstr(place.back()), HasSubstr("expected")))
          << mistyped;
      ++changes;
      if (isFree(example.message, place)) continue;
      json missing = example.message;
      missing[place.parent_pointer()].erase(place.back());
      EXPECT_THAT(example.whyNot(missing), HasSubstr(place.back() + ": is missing")) << missing;
    }
    for (const json::json_pointer& place : objects) {
      if (example.message.at(place).contains("name")) continue;
      json unknown = example.message;
      unknown[place / "surplus"] = 1;
      EXPECT_THAT(example.whyNot(unknown), HasSubstr("surplus: is unknown")) << unknown;
      ++changes;
    }
  }
  EXPECT_GT(changes, 300);
}

TEST(WireTest, WhatIsNoMessageIsRefused) {
  for (const json& no : {json(), json("start"), json::array({1}), json(7)}) {
    EXPECT_THAT(whyNot<ToRank>(no), HasSubstr("document: expected an object"));
  }
  EXPECT_EQ(whyNot<ToRank>(json::object()), "type: is missing");
  EXPECT_EQ(whyNot<ToRank>({{"type", "explode"}}),
            "type: expected one of start, stop, found \"explode\"");
}

TEST(WireTest, TypesOfAProtocolAreDistinct) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const Example& example : examples()) {
    EXPECT_TRUE(seen.insert({example.protocol, example.message["type"]}).second)
        << example.protocol << " " << example.message["type"];
  }
}

TEST(WireTest, ListsOfATraceAreOfTheSameEvents) {
  Done done;
  done.network.trace = Trace{.kind = {"chunk_sent"}, .peer = {1}};
  EXPECT_EQ(whyNot<FromRank>(toJson(FromRank(done))), "network.trace: lists of 1 and of 0 events");
}

TEST(WireTest, AnotherVersionIsToldBeforeAnythingElse) {
  GuardJob job;
  EXPECT_TRUE(checkVersion(toJson(ToGuard(job))).ok());
  job.version = kVersion + 1;
  EXPECT_THAT(checkVersion(toJson(ToGuard(job))).message(),
              HasSubstr(fmt::format("version {} of the messages, and this program version {}",
                                    kVersion + 1, kVersion)));
  EXPECT_THAT(checkVersion({{"type", "job"}}).message(), HasSubstr("version: is missing"));
  EXPECT_THAT(checkVersion(json("hello")).message(), HasSubstr("version: is missing"));
}

TEST(WireTest, AStatusIsTheSameAtTheOtherEnd) {
  const Status refused(Code::kNotRestored, "the queue is still there");
  const Outcome outcome = Outcome::of(refused);
  EXPECT_EQ(outcome.status().code(), refused.code());
  EXPECT_EQ(outcome.status().message(), refused.message());
  EXPECT_TRUE(Outcome::of(okStatus()).status().ok());
}

TEST(WireSchemaTest, EveryMessageFitsAndNothingElse) {
  const auto definitions = schema()["definitions"];
  std::set<std::string> protocols;
  for (const Example& example : examples()) {
    protocols.insert(example.protocol);
    const auto message = testing::SchemaJson::parse(example.message.dump());
    EXPECT_THAT(testing::schemaViolations(definitions[example.protocol], message),
                ::testing::IsEmpty())
        << example.message;
    auto surplus = message;
    surplus["surplus"] = 1;
    EXPECT_THAT(testing::schemaViolations(definitions[example.protocol], surplus),
                ::testing::Not(::testing::IsEmpty()));
  }
  EXPECT_EQ(protocols.size(), definitions.size()) << "a protocol has no examples";
}

TEST(WireSchemaTest, TheFileIsThatOfTheSources) {
  const std::string made = schema().dump(1) + "\n";
  const auto kept = readFile(FAULTLINE_SOURCE_DIR "/wire/schema.json");
  if (kept.ok() && *kept == made) return;
  const std::string path = ::testing::TempDir() + "wire-schema.json";
  std::ofstream(path) << made;
  ADD_FAILURE() << "The messages have changed. If a program of before would misread them, raise "
                   "wire::kVersion. Then: cp "
                << path << " wire/schema.json";
}

}  // namespace
}  // namespace faultline::wire
