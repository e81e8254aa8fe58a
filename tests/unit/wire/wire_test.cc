#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/input_file.h"
#include "harness/workload/rank_config.h"
#include "harness/workload/rank_config_fields.h"
#include "tests/support/json_schema.h"
#include "wire/agent.h"
#include "wire/guard.h"
#include "wire/guest.h"
#include "wire/rank.h"
#include "wire/service.h"

// Every message of every protocol, and the configuration of a rank: comes back as it was, fits the
// schema, and is refused when a field is missing, unknown or of another type, or a number of a rank
// is one that it cannot mean.

namespace faultline::wire {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Of an entry of a map.
constexpr const char* kFreeName = "any name";

/// An instance in which every list, map and optional has an entry, so that all fields are there.
class Filler {
 public:
  template <typename T>
  static void fill(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = 7;
    } else if constexpr (Hexadecimal<T>) {
      value = T::fromHex("00112233445566778899aabbccddeeff").value();
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = "words";
    } else if constexpr (std::is_same_v<T, TimePoint>) {
      value = TimePoint(5s);
    } else if constexpr (std::is_same_v<T, Duration>) {
      value = 3us;
    } else if constexpr (std::is_enum_v<T>) {
      value = namesOf(value).back().value;
    } else if constexpr (Named<T>) {
      value = namesOf(value).front().value;
    } else if constexpr (nlohmann::detail::is_basic_json<T>::value) {
      value = nullptr;  // anything; the first workload has nothing of its own
    } else {
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
    fill(values[kFreeName]);
  }
  template <typename First, typename... More>
  static void fill(std::variant<First, More...>& value) {
    fill(value.template emplace<First>());
  }
  template <typename T>
  void required(const char* /*key*/, T& value, const NumberRange& range = {}) {
    fill(value);
    if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(std::min(static_cast<double>(value), range.most));
    }
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

/// What a rank is told first: no variant, and a struct of a room above.
constexpr const char* kConfiguration = "configuration_of_a_rank";

workload::RankConfig wholeConfiguration() {
  workload::RankConfig config;
  Filler::fill(config);
  config.version = kVersion;
  config.rank = 0;
  config.size = 1;
  config.algorithm = "ring";
  config.workload.gradient.size = 8;
  config.workload.model->parallel = {.zero = 3};
  config.workload.serving->disaggregated = false;
  return config;
}

std::string whyNotConfiguration(const json& message) {
  const auto read = workload::rankConfigFromJson(message);
  if (!read.ok()) return read.status().message();
  return workload::toJson(*read) == message ? "" : "it comes back as another one";
}

std::vector<Example> examples() {
  std::vector<Example> all;
  addExamples(all, "controller_to_rank", ToRank{});
  addExamples(all, "rank_to_controller", FromRank{});
  addExamples(all, "controller_to_guard", ToGuard{});
  addExamples(all, "guard_to_controller", FromGuard{});
  addExamples(all, "controller_to_agent", ToAgent{});
  addExamples(all, "agent_to_controller", FromAgent{});
  addExamples(all, "controller_to_guest", ToGuest{});
  addExamples(all, "guest_to_controller", FromGuest{});
  addExamples(all, "controller_to_holder", ToHolder{});
  addExamples(all, "holder_to_controller", FromHolder{});
  addExamples(all, "client_to_service", ToService{});
  addExamples(all, "service_to_client", FromService{});
  addExamples(all, "controller_to_machine_room", ToRoom{});
  addExamples(all, "machine_room_to_controller", FromRoom{});
  all.push_back({kConfiguration, workload::toJson(wholeConfiguration()), whyNotConfiguration});
  return all;
}

/// Of all protocols, and of the configuration.
nlohmann::ordered_json wholeSchema() {
  nlohmann::ordered_json whole = schema();
  whole["definitions"][kConfiguration] = workload::rankConfigSchema();
  return whole;
}

/// Adds up what the table of a struct visits. Bytes that are neither visited nor padding are a
/// member that the table does not have, which would be lost on the way.
class Tiling {
 public:
  template <typename T>
  static void check(const std::string& name) {
    T value;
    Tiling tiling(&value);
    visitFields(tiling, value);
    std::ranges::sort(tiling.members_);
    std::size_t end = 0;
    for (const auto& [begin, size, alignment] : tiling.members_) {
      EXPECT_EQ(begin, (end + alignment - 1) / alignment * alignment)
          << name << ": a member in front of byte " << begin << " is not in its table";
      end = begin + size;
    }
    const std::size_t whole = (end + alignof(T) - 1) / alignof(T) * alignof(T);
    EXPECT_EQ(end == 0 ? 0 : sizeof(T), whole) << name << ": its last member is not in its table";
  }
  template <typename T>
  void required(const char* key, T& member, const NumberRange& /*range*/ = {}) {
    const auto begin = reinterpret_cast<const char*>(&member) - base_;
    members_.emplace_back(static_cast<std::size_t>(begin), sizeof(T), alignof(T));
    descend<T>(key);
  }

 private:
  explicit Tiling(const void* base) : base_(static_cast<const char*>(base)) {}

  template <typename T>
  static void descend(const char* key) {
    if constexpr (requires(T list) {
                    typename T::value_type;
                    list.push_back({});
                  }) {
      descend<typename T::value_type>(key);
    } else if constexpr (requires(T optional) {
                           *optional;
                           optional.reset();
                         }) {
      descend<typename T::value_type>(key);
    } else if constexpr (requires(Filler filler, T value) { visitFields(filler, value); }) {
      check<T>(key);
    }
  }

  const char* base_;
  std::vector<std::tuple<std::size_t, std::size_t, std::size_t>> members_;
};

template <typename... Ts>
void checkTables(const std::variant<Ts...>& /*which*/) {
  (Tiling::check<Ts>(Ts::kType), ...);
}

TEST(WireTest, EveryMemberIsInItsTable) {
  checkTables(ToRank{});
  checkTables(FromRank{});
  checkTables(ToGuard{});
  checkTables(FromGuard{});
  checkTables(ToAgent{});
  checkTables(FromAgent{});
  checkTables(ToGuest{});
  checkTables(FromGuest{});
  checkTables(ToHolder{});
  checkTables(FromHolder{});
  checkTables(ToService{});
  checkTables(FromService{});
  checkTables(ToRoom{});
  checkTables(FromRoom{});
}

/// As an error has it behind the type of its message: ".network.failovers[0].rail".
std::string inWords(json::json_pointer place) {
  if (place == json::json_pointer("/type")) return "type";
  std::string words;
  for (; !place.empty(); place.pop_back()) {
    const std::string& key = place.back();
    const bool index = key.find_first_not_of("0123456789") == std::string::npos;
    words = (index ? "[" + key + "]" : "." + key) + words;
  }
  return words;
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
  return place.back() == kFreeName || message.at(place.parent_pointer()).contains(kFreeName);
}

TEST(WireTest, AMissingAnUnknownOrAMistypedFieldIsRefusedAndNamed) {
  int changes = 0;
  for (const Example& example : examples()) {
    std::vector<json::json_pointer> objects, keys;
    collect(example.message, json::json_pointer(), objects, keys);
    for (const json::json_pointer& place : keys) {
      const bool first = example.protocol == kConfiguration && place.back() == "version";
      if (first) continue;  // it is looked at before all others, and is told without them
      json mistyped = example.message;
      mistyped[place] = example.message[place].is_array() ? json("x") : json::array({1});
      EXPECT_THAT(example.whyNot(mistyped), HasSubstr(inWords(place) + ": expected")) << mistyped;
      ++changes;
      if (example.message[place].is_number()) {
        json none = example.message;
        none[place] = nullptr;
        EXPECT_TRUE(example.whyNot(none).empty() ||
                    example.whyNot(none).find(inWords(place) + ": expected") != std::string::npos)
            << none << ": refused, or optional";
      }
      if (isFree(example.message, place)) continue;
      json missing = example.message;
      missing[place.parent_pointer()].erase(place.back());
      EXPECT_THAT(example.whyNot(missing), HasSubstr(inWords(place) + ": is missing")) << missing;
    }
    for (const json::json_pointer& place : objects) {
      if (example.message.at(place).contains(kFreeName)) continue;
      json unknown = example.message;
      unknown[place / "surplus"] = 1;
      EXPECT_THAT(example.whyNot(unknown), HasSubstr(inWords(place / "surplus") + ": is unknown"))
          << unknown;
      ++changes;
    }
  }
  EXPECT_GT(changes, 300);
}

TEST(WireTest, ANumberThatARankCannotMeanIsRefusedAndNamed) {
  const auto definitions = wholeSchema()["definitions"];
  int numbers = 0, shares = 0;
  for (const Example& example : examples()) {
    if (example.protocol != "rank_to_controller" && example.protocol != kConfiguration) continue;
    std::vector<json::json_pointer> objects, keys;
    collect(example.message, json::json_pointer(), objects, keys);
    const auto refuses = [&](const json::json_pointer& place, const json& number,
                             const std::string& why) {
      json changed = example.message;
      changed[place] = number;
      EXPECT_THAT(example.whyNot(changed), HasSubstr(inWords(place) + why)) << changed;
      EXPECT_THAT(testing::schemaViolations(definitions[example.protocol],
                                            testing::SchemaJson::parse(changed.dump())),
                  ::testing::Not(::testing::IsEmpty()))
          << changed;
    };
    for (json::json_pointer place : keys) {
      if (example.message[place].is_array() && !example.message[place].empty()) place /= 0;
      if (!example.message[place].is_number() || place.back() == "version") continue;
      refuses(place, -2, ": ");
      ++numbers;
      if (example.message[place] != 1.0 || !example.message[place].is_number_float()) continue;
      refuses(place, 1.5, ": expected 0 to 1, found 1.5");
      ++shares;
    }
  }
  EXPECT_GT(numbers, 100);
  EXPECT_GT(shares, 2);
}

TEST(WireTest, AnIndexOfWhatThereIsNotIsRefusedAndNamed) {
  const Counts counts{{"ranks", 4}, {"rails", 2}, {"iterations", 9}, {"requests", 6}, {"rates", 3}};
  const auto refusal = [&](const FromRank& message) {
    return checkIndexes(message, counts).message();
  };
  const auto inNetwork = [&](const Network& network) { return refusal(Done{.network = network}); };
  EXPECT_EQ(refusal(Begin{.iteration = 8}), "");
  EXPECT_EQ(refusal(Begin{.iteration = 9}), "begin.iteration: expected 0 to 8, found 9");
  EXPECT_EQ(refusal(End{.iteration = 9}), "end.iteration: expected 0 to 8, found 9");
  EXPECT_EQ(refusal(End{.network = Network{.failovers = {{.peer = 4}}}}),
            "end.network.failovers[0].peer: expected 0 to 3, found 4");
  EXPECT_EQ(inNetwork({.failovers = {{.peer = 3, .rail = 1}}}), "");
  EXPECT_EQ(inNetwork({.failovers = {{}, {.rail = 2}}}),
            "done.network.failovers[1].rail: expected 0 to 1, found 2");
  EXPECT_EQ(inNetwork({.degradations = {{.peer = 5}}}),
            "done.network.degradations[0].peer: expected 0 to 3, found 5");
  EXPECT_EQ(inNetwork({.degradations = {{.rail = 5}}}),
            "done.network.degradations[0].rail: expected 0 to 1, found 5");
  EXPECT_EQ(inNetwork({.portTests = {{.slowPaths = {{.from = 3, .to = 4}}}}}),
            "done.network.port_tests[0].slow_paths[0].to: expected 0 to 3, found 4");
  EXPECT_EQ(inNetwork({.portTests = {{.slowPaths = {{.from = 4}}}}}),
            "done.network.port_tests[0].slow_paths[0].from: expected 0 to 3, found 4");
  EXPECT_EQ(inNetwork({.trace = Trace{.peer = {-1, 3}, .rail = {-1, 1}}}), "");
  EXPECT_EQ(inNetwork({.trace = Trace{.peer = {-1, 4}}}),
            "done.network.trace.peer[1]: expected -1 to 3, found 4");
  EXPECT_EQ(inNetwork({.trace = Trace{.rail = {2}}}),
            "done.network.trace.rail[0]: expected -1 to 1, found 2");
  EXPECT_EQ(refusal(Excluded{.rails = {0, 2}}), "excluded.rails[1]: expected 0 to 1, found 2");
  EXPECT_EQ(refusal(Shrunk{.ranks = {4}}), "shrunk.ranks[0]: expected 0 to 3, found 4");
  EXPECT_EQ(refusal(Shrunk{.iteration = 9}), "") << "all of them may be done";
  EXPECT_EQ(refusal(Rate{.rate = 3}), "rate.rate: expected 0 to 2, found 3");
  EXPECT_EQ(refusal(Token{.requests = {5, 6}}), "token.requests[1]: expected 0 to 5, found 6");
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
    if (example.protocol == kConfiguration) continue;
    EXPECT_TRUE(seen.insert({example.protocol, example.message["type"]}).second)
        << example.protocol << " " << example.message["type"];
  }
}

TEST(WireTest, ListsOfATraceAreOfTheSameEvents) {
  Done done;
  done.network.trace = Trace{.kind = {"chunk_sent"}, .peer = {1}};
  EXPECT_EQ(whyNot<FromRank>(toJson(FromRank(done))),
            "done.network.trace: lists of 1 and of 0 events");
}

TEST(WireTest, AnErrorIsNoSuccess) {
  EXPECT_EQ(whyNot<FromRank>(toJson(FromRank(Error{.code = Code::kOk}))),
            "error: an error whose code is success");
  EXPECT_EQ(whyNot<FromGuard>(toJson(FromGuard(GuardError{}))),
            "error: an error whose code is success");
  EXPECT_EQ(whyNot<FromHolder>(toJson(FromHolder(HolderBroken{}))),
            "broken: an error whose code is success");
}

TEST(WireTest, AStrikeNeedsAnEndAndALease) {
  const auto refusal = [](Duration longest, Duration lease) {
    return whyNot<ToService>(toJson(ToService(ServiceStrike{.longest = longest, .lease = lease})));
  };
  EXPECT_EQ(refusal(1s, 1s), "");
  EXPECT_EQ(refusal(0s, 1s), "strike: longest: a strike needs one, or nobody would end it");
  EXPECT_EQ(refusal(1s, 0s), "strike: lease: a strike needs one, or nobody would end it");
  EXPECT_THAT(refusal(-1s, 1s), HasSubstr("strike.longest: expected at least 0"));
}

TEST(WireTest, ANumberThatNobodyKnowsIsRefusedWhereOneIsNeeded) {
  Events events;
  events.network.degradations.push_back({.share = std::numeric_limits<double>::infinity()});
  EXPECT_THAT(whyNot<FromRank>(toJson(FromRank(events))),
              HasSubstr("events.network.degradations[0].share: expected a number, found a null"));
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

TEST(WireTest, AProtocolBeginsWithItsFirstMessage) {
  const auto first = [](const ToGuard& message) {
    json object = toJson(message);
    object["version"] = kVersion;  // which others do not have
    return firstFromJson<ToGuard, GuardJob>(object).status().message();
  };
  EXPECT_EQ(first(GuardJob{}), "");
  EXPECT_EQ(first(EndPrograms{}), "end.version: is unknown");
  // Each by the version of its own protocol.
  EXPECT_THAT(
      (firstFromJson<ToGuest, GuestSetup>(toJson(ToGuest(GuestSetup{.version = kAgentVersion + 1})))
           .status()
           .message()),
      HasSubstr(fmt::format("version {} of the messages, and this program version {}",
                            kAgentVersion + 1, kAgentVersion)));
  const json setup = toJson(ToGuest(GuestSetup{}));
  EXPECT_TRUE((firstFromJson<ToGuest, GuestSetup>(setup).ok()));
  EXPECT_EQ(
      (firstFromJson<std::variant<GuestSetup, AgentSetup>, AgentSetup>(setup).status().message()),
      "the first message must be of type node");
}

TEST(WireTest, AStatusIsTheSameAtTheOtherEnd) {
  const Status refused(Code::kNotRestored, "the queue is still there");
  const Outcome outcome = Outcome::of(refused);
  EXPECT_EQ(outcome.status().code(), refused.code());
  EXPECT_EQ(outcome.status().message(), refused.message());
  EXPECT_TRUE(Outcome::of(okStatus()).status().ok());
}

TEST(WireSchemaTest, EveryMessageFitsAndNothingElse) {
  const auto definitions = wholeSchema()["definitions"];
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
  const std::string made = wholeSchema().dump(1) + "\n";
  const auto kept = readFile(FAULTLINE_SOURCE_DIR "/wire/schema.json");
  if (kept.ok() && *kept == made) return;
  const std::string path = ::testing::TempDir() + "wire-schema.json";
  std::ofstream(path) << made;
  ADD_FAILURE() << "The messages have changed: cp " << path << " wire/schema.json";
  if (!kept.ok()) return;
  const json before = json::parse(*kept);
  EXPECT_FALSE(before["version"] == kVersion && before.value("agent_version", 0) == kAgentVersion)
      << "Raise wire::kAgentVersion; or, for messages of ranks and guards, wire::kVersion, and "
         "record the transcripts again (ci/record_transcripts.sh).";
}

}  // namespace
}  // namespace faultline::wire
