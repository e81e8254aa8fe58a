// A strike, ended after each of its steps, before and behind their effect, and undone by somebody
// else, who is ended after each of his: the machine is always as it was before.
#include "injector/safety/strike.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <thread>

namespace faultline::safety {
namespace {

using ::testing::HasSubstr;

/// What would be left of a process that was killed.
struct Killed {};

const std::vector<std::string> kBefore{"/bin/drain", "on"};
const std::vector<std::string> kAfter{"/bin/drain", "off"};

/// What is there, apart from processes.
struct World {
  bool down = false;
  bool queue = false;
  bool configured = true;
  bool foreignQueue = false;
  bool announced = false;
  int announcements = 0;
  std::map<std::string, std::string> journal;

  bool isAsBefore() const { return !down && !queue && configured && !announced && journal.empty(); }
  std::string toString() const {
    return fmt::format("down {} queue {} configured {} announced {} journal {}", down, queue,
                       configured, announced, journal.size());
  }
};

/// Ends its process at the `last`-th step: before its effect, or behind it. Each call is a step.
class Model final : public Machine, public Records {
 public:
  explicit Model(World& world, int last = -1, bool behind = false)
      : world_(world), last_(last), behind_(behind) {}

  int steps() const { return steps_; }
  void failAt(std::string step) { fails_ = std::move(step); }
  /// What somebody else does while it is announced.
  void meanwhile(std::function<void()> work) { meanwhile_ = std::move(work); }

  Status check(const Target&, const Operation& operation) override {
    return step("check", [&] {
      if (isQueue(operation) && world_.foreignQueue) {
        return errorf(Code::kAlreadyExists, "there is a queue that is not ours");
      }
      if (!isQueue(operation) && world_.down) return errorf(Code::kUnavailable, "it is off");
      return okStatus();
    });
  }
  Status apply(const Target&, const Operation& operation) override {
    return step(isQueue(operation) ? "add" : "down", [&] {
      if (isQueue(operation)) {
        world_.queue = true;
      } else {
        world_.down = true;
        world_.configured = false;
      }
      return okStatus();
    });
  }
  Result<bool> isInEffect(const Target&, const Operation& operation) override {
    bool lasts = false;
    RETURN_IF_ERROR(step("look", [&] {
      lasts = isQueue(operation) ? world_.queue : world_.down;
      return okStatus();
    }));
    return lasts;
  }
  Status undo(const Target&, const Operation& operation) override {
    return step(isQueue(operation) ? "remove" : "up", [&] {
      EXPECT_TRUE(isQueue(operation) ? world_.queue : world_.down) << "only where it is in effect";
      (isQueue(operation) ? world_.queue : world_.down) = false;
      return okStatus();
    });
  }
  Result<nlohmann::json> configuration(const Target&, bool loses) override {
    RETURN_IF_ERROR(step("note", [] { return okStatus(); }));
    return nlohmann::json(loses ? "whole" : "works");
  }
  Status settle(const Target&, const nlohmann::json& configuration) override {
    return step("settle", [&] {
      if (world_.down) return errorf(Code::kDeadlineExceeded, "no carrier");
      if (configuration == nlohmann::json("whole")) world_.configured = true;
      return okStatus();
    });
  }
  Status run(const std::vector<std::string>& command, Duration) override {
    return step(command == kBefore ? "before" : "after", [&] {
      EXPECT_TRUE(command == kBefore || !world_.down || meanwhile_)
          << "the maintenance goes on while it is broken";
      EXPECT_FALSE(world_.journal.empty()) << "somebody must know of it";
      if (command == kBefore) ++world_.announcements;
      world_.announced = command == kBefore;
      if (command == kBefore && meanwhile_) meanwhile_();
      return okStatus();
    });
  }
  Status create(const Entry& entry) override {
    EXPECT_FALSE(world_.journal.contains(entry.id));
    return write(entry);
  }
  Status write(const Entry& entry) override {
    return step("write", [&] {
      world_.journal[entry.id] = encode(entry);
      return okStatus();
    });
  }
  Status remove(const std::string& id) override {
    return step("remove entry", [&] {
      world_.journal.erase(id);
      return okStatus();
    });
  }

 private:
  static bool isQueue(const Operation& operation) {
    return std::holds_alternative<SendLimit>(operation);
  }
  template <typename Effect>
  Status step(const std::string& name, Effect effect) {
    const bool ends = steps_++ == last_;
    if (ends && !behind_) throw Killed();
    if (name == fails_) return errorf(Code::kIo, "{} failed", name);
    const Status status = effect();
    if (ends) throw Killed();
    return status;
  }

  World& world_;
  int last_;
  bool behind_;
  int steps_ = 0;
  std::string fails_;
  std::function<void()> meanwhile_;
};

Entry entryOf(std::vector<Operation> operations) {
  Entry entry{.id = "1", .bootId = "b", .holder = {2, 3}};
  entry.operations = std::move(operations);
  entry.before = kBefore;
  entry.after = kAfter;
  return entry;
}

const std::vector<std::vector<Operation>> kPlans{
    {LinkDown{}}, {SendLimit{1000}}, {SendLimit{1000}, LinkDown{}}};

void strikeWhole(Model& model, const std::vector<Operation>& operations) {
  Entry entry = entryOf(operations);
  if (begin(model, model, entry).ok()) (void)undo(model, model, entry);
}

/// What `restore` does, as far as it comes.
Status restore(World& world, Model& model) {
  while (!world.journal.empty()) {
    const auto entry = decode(world.journal.begin()->second);
    EXPECT_TRUE(entry.ok());
    RETURN_IF_ERROR(undo(model, model, *entry));
  }
  return okStatus();
}

/// Of a strike of one operation: check, note, write, before, and then the check again.
constexpr int stepOfCheckAgain() { return 4; }

/// Whether it came to its end.
template <typename Work>
bool endsByItself(Work work) {
  try {
    work();
    return true;
  } catch (const Killed&) {
    return false;
  }
}

int stepsOf(const std::vector<Operation>& operations) {
  World world;
  Model model(world);
  strikeWhole(model, operations);
  EXPECT_TRUE(world.isAsBefore()) << world.toString();
  EXPECT_EQ(world.announcements, 1);
  return model.steps();
}

TEST(StrikeTest, EndedAfterAnyStepItIsUndoneFromTheJournal) {
  for (const auto& operations : kPlans) {
    const int steps = stepsOf(operations);
    ASSERT_GE(steps, 9);
    for (int last = 0; last < steps; ++last) {
      for (const bool behind : {false, true}) {
        World world;
        Model killed(world, last, behind);
        EXPECT_FALSE(endsByItself([&] { strikeWhole(killed, operations); }));
        Model whole(world);
        EXPECT_TRUE(restore(world, whole).ok());
        EXPECT_TRUE(world.isAsBefore()) << last << behind << ": " << world.toString();
      }
    }
  }
}

TEST(StrikeTest, WhoUndoesMayBeEndedAfterAnyStepToo) {
  for (const auto& operations : kPlans) {
    const int steps = stepsOf(operations);
    int tried = 0;
    for (int last = 0; last < steps; ++last) {
      for (const bool behind : {false, true}) {
        World broken;
        Model killed(broken, last, behind);
        EXPECT_FALSE(endsByItself([&] { strikeWhole(killed, operations); }));
        bool over = false;
        for (int undone = 0; !over; ++undone) {
          for (const bool behind_too : {false, true}) {
            World world = broken;
            Model again(world, undone, behind_too);
            over = endsByItself([&] { (void)restore(world, again); });
            Model whole(world);
            EXPECT_TRUE(restore(world, whole).ok());
            EXPECT_TRUE(world.isAsBefore())
                << last << behind << undone << behind_too << ": " << world.toString();
            ++tried;
          }
        }
      }
    }
    EXPECT_GT(tried, 100);
  }
}

TEST(StrikeTest, NothingIsChangedBeforeItIsInTheJournal) {
  for (const auto& operations : kPlans) {
    for (int last = 0; last < stepsOf(operations); ++last) {
      World world;
      Model killed(world, last, true);
      (void)endsByItself([&] { strikeWhole(killed, operations); });
      EXPECT_TRUE(!world.journal.empty() || world.isAsBefore()) << world.toString();
    }
  }
}

TEST(StrikeTest, WhateverFailsNothingIsLeftOrItIsSaid) {
  for (const auto& operations : kPlans) {
    for (const char* step : {"check", "note", "write", "before", "add", "down"}) {
      World world;
      Model model(world);
      model.failAt(step);
      Entry entry = entryOf(operations);
      const Status begun = begin(model, model, entry);
      if (begun.ok()) {  // a step that this one does not have
        EXPECT_TRUE(undo(model, model, entry).ok());
      } else {
        EXPECT_EQ(begun.code(), std::string(step) == "before" ? Code::kIo : begun.code());
        EXPECT_THAT(begun.message(), HasSubstr(std::string(step) + " failed"));
      }
      EXPECT_TRUE(world.isAsBefore()) << step << ": " << world.toString();
    }
    for (const char* step : {"look", "remove", "up", "settle", "after", "remove entry"}) {
      World world;
      Model model(world);
      Entry entry = entryOf(operations);
      ASSERT_TRUE(begin(model, model, entry).ok());
      model.failAt(step);
      const Status undone = undo(model, model, entry);
      if (undone.ok()) continue;
      EXPECT_EQ(world.journal.size(), 1u) << step;
      if (std::string(step) != "remove entry") {
        EXPECT_EQ(undone.code(), Code::kNotRestored) << step;
        EXPECT_THAT(decode(world.journal.begin()->second)->left, HasSubstr("failed")) << step;
      }
      Model whole(world);
      EXPECT_TRUE(restore(world, whole).ok());
      EXPECT_TRUE(world.isAsBefore()) << step << ": " << world.toString();
    }
  }
}

TEST(StrikeTest, WhenBeforeFailsNothingIsStruckAndAfterRuns) {
  World world;
  Model model(world);
  model.failAt("before");
  Entry entry = entryOf({LinkDown{}});
  world.announced = true;  // it may have come half-way
  EXPECT_THAT(begin(model, model, entry).message(), HasSubstr("so nothing was struck"));
  EXPECT_TRUE(world.isAsBefore()) << world.toString();
}

TEST(StrikeTest, InterruptedWhileItIsAnnouncedNothingIsStruck) {
  World world;
  Model model(world);
  Entry entry = entryOf({LinkDown{}});
  model.failAt("down");  // it must not come to that
  EXPECT_EQ(begin(model, model, entry, [] { return true; }).code(), Code::kAborted);
  EXPECT_TRUE(world.isAsBefore()) << world.toString();
  EXPECT_EQ(world.announcements, 1);
}

TEST(StrikeTest, WhatSomebodyElseDoesMeanwhileIsNotUndone) {
  for (const bool killed : {false, true}) {
    for (const bool queue : {false, true}) {
      World world;
      Model model(world, killed ? stepOfCheckAgain() : -1);
      model.meanwhile([&] { (queue ? world.foreignQueue : world.down) = true; });
      Entry entry = entryOf({LinkDown{}});
      if (queue) entry.operations = {SendLimit{1000}};
      if (queue) world.queue = true;  // what is there looks like ours
      Status begun;
      EXPECT_EQ(endsByItself([&] { begun = begin(model, model, entry); }), !killed);
      EXPECT_TRUE(killed || !begun.ok());
      EXPECT_EQ(world.journal.size(), killed ? 1u : 0u);
      Model other(world);
      other.meanwhile([] {});
      EXPECT_TRUE(restore(world, other).ok());
      EXPECT_EQ(world.down, !queue) << "that was an administrator's wish";
      EXPECT_EQ(world.queue, queue) << "it is not ours";
      EXPECT_FALSE(world.announced);
      EXPECT_TRUE(world.journal.empty());
    }
  }
}

TEST(StrikeTest, ItEndsAsMuchLaterAsItsAnnouncementTook) {
  World world;
  Model model(world);
  model.meanwhile([] { std::this_thread::sleep_for(20ms); });
  Entry entry = entryOf({LinkDown{}});
  entry.endsMonotonic = TimePoint(100s);
  ASSERT_TRUE(begin(model, model, entry).ok());
  const auto noted = decode(world.journal.begin()->second);
  ASSERT_TRUE(noted.ok());
  EXPECT_GE(noted->endsMonotonic, TimePoint(100s + 20ms));
  EXPECT_EQ(noted->begun, 1);
}

TEST(StrikeTest, WhatOneOperationCannotUndoDoesNotKeepTheOthers) {
  World world;
  Model model(world);
  Entry entry = entryOf({SendLimit{1000}, LinkDown{}});
  ASSERT_TRUE(begin(model, model, entry).ok());
  model.failAt("up");
  EXPECT_FALSE(undo(model, model, entry).ok());
  EXPECT_FALSE(world.queue);
  EXPECT_TRUE(world.announced) << "something is broken still";
}

TEST(StrikeTest, WhatIsForeignIsRefusedAndStays) {
  World world;
  world.foreignQueue = true;
  Model model(world);
  Entry entry = entryOf({LinkDown{}, SendLimit{1000}});
  EXPECT_EQ(begin(model, model, entry).code(), Code::kAlreadyExists);
  EXPECT_TRUE(world.isAsBefore()) << world.toString();
  EXPECT_EQ(world.announcements, 0);
}

TEST(StrikeTest, WhatVlansAboveWouldLoseIsRefused) {
  netlink::NetDevice port;
  port.ifindex = 3;
  port.name = "eth1";
  netlink::NetDevice above;
  above.ifindex = 7;
  above.name = "eth1.5";
  above.kind = "vlan";
  above.peer_ifindex = 3;
  const Status refused = refuseLossAbove({port, above}, 3);
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("eth1.5"));
  EXPECT_TRUE(refuseLossAbove({port, above}, 7).ok()) << "on that one nothing sits";
  netlink::NetDevice elsewhere = above;
  elsewhere.peer_elsewhere = true;  // its number is of another namespace
  EXPECT_TRUE(refuseLossAbove({port, elsewhere}, 3).ok());
  above.kind = "macvlan";  // stays up
  EXPECT_TRUE(refuseLossAbove({port, above}, 3).ok());
}

TEST(StrikeTest, WhatItDoesNotLoseItDoesNotPutBack) {
  World world;
  Model model(world);
  Entry entry = entryOf({SendLimit{1000}});
  ASSERT_TRUE(begin(model, model, entry).ok());
  world.configured = false;  // somebody withdraws a route
  EXPECT_TRUE(undo(model, model, entry).ok());
  EXPECT_FALSE(world.configured);
}

TEST(StrikeTest, OnlyWhatWasBegunLasts) {
  World world;
  Model model(world);
  Entry entry = entryOf({SendLimit{1000}, LinkDown{}});
  entry.begun = 1;
  world.down = true;  // somebody else's
  EXPECT_FALSE(lasts(model, entry));
  world.queue = true;
  EXPECT_TRUE(lasts(model, entry));
  world.queue = false;
  entry.begun.reset();
  EXPECT_TRUE(lasts(model, entry)) << "of an earlier faultline: it may be ours";
  world.down = false;
  EXPECT_FALSE(lasts(model, entry));
  model.failAt("look");
  EXPECT_TRUE(lasts(model, entry)) << "who knows";
}

TEST(StrikeTest, AnEntryOfAnotherBootIsClosedAndNotReplayed) {
  const Entry entry = entryOf({LinkDown{}});
  EXPECT_EQ(fateOf(entry, "b", true), Fate::kHeld);
  EXPECT_EQ(fateOf(entry, "b", false), Fate::kUndo);
  EXPECT_EQ(fateOf(entry, "c", false), Fate::kClosed);
  EXPECT_EQ(fateOf(entry, "c", true), Fate::kClosed);
  World world;
  world.announced = true;
  world.journal[entry.id] = encode(entry);
  Model model(world);
  EXPECT_TRUE(close(model, model, entry).ok());
  EXPECT_EQ(model.steps(), 2) << "only what was announced is taken back, and the entry removed";
  EXPECT_TRUE(world.isAsBefore());
}

}  // namespace
}  // namespace faultline::safety
