#include "injector/safety/entry.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "injector/safety/journal.h"
#include "tests/support/run_program.h"

namespace faultline::safety {
namespace {

using ::testing::HasSubstr;

Entry sample() {
  return {.id = "1764543600-17",
          .bootId = "7a6f",
          .holder = {17, 123456},
          .target = {"eth1", 3, "02:00:00:00:00:03", "", "0000:17:00.1", 4026531840},
          .kind = "port_down",
          .parameters = {{"how", "admin"}},
          .operations = {LinkDown{}, SendLimit{1'000'000}, DropFrames{.received = false},
                         LoseFrames{.sentPercent = 0.1, .receivedPercent = 33.3}},
          .configuration = {{"lost", {1, 2, "three"}}, {"worked", true}},
          .before = {"/bin/true", "a b"},
          .after = {"/bin/true"},
          .commandLimit = 30s,
          .beganAt = 1764543600,
          .endsAt = 1764543602,
          .endsMonotonic = TimePoint(123s),
          .user = "al\"ice\n",
          .job = "job 4",
          .left = ""};
}

TEST(EntryTest, IsReadBack) {
  const auto read = decode(encode(sample()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, sample());
}

TEST(EntryTest, WhatWasCutIsRefused) {
  const std::string text = encode(sample());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(decode(text.substr(0, size)).status().code(), Code::kInvalidArgument) << size;
  }
  EXPECT_FALSE(decode(text + " ").ok());
  EXPECT_FALSE(decode(text + text).ok());
}

TEST(EntryTest, EachBitThatIsFlippedIsSeen) {
  const std::string text = encode(sample());
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      EXPECT_EQ(decode(flipped).status().code(), Code::kInvalidArgument) << at << '.' << bit;
    }
  }
}

TEST(EntryTest, HowFarItHasComeIsReadBackAndMayBeMissing) {
  EXPECT_FALSE(decode(encode(sample()))->begun);
  Entry entry = sample();
  entry.begun = 1;
  EXPECT_EQ(decode(encode(entry))->begun, 1);
}

TEST(EntryTest, OneWithoutBootOrHolderIsRefused) {
  Entry entry = sample();
  entry.bootId = "";
  EXPECT_THAT(decode(encode(entry)).status().message(), HasSubstr("in which boot"));
  entry = sample();
  entry.holder.started = 0;
  EXPECT_THAT(decode(encode(entry)).status().message(), HasSubstr("by which process"));
}

TEST(EntryTest, ALaterVersionIsNamed) {
  Entry later = sample();
  later.version = 2;
  EXPECT_THAT(decode(encode(later)).status().message(), HasSubstr("of a later faultline"));
}

TEST(EntryTest, IsOverdueOnceItsGraceIsOver) {
  const TimePoint end = sample().endsMonotonic;
  EXPECT_FALSE(isOverdue(sample(), end));
  EXPECT_FALSE(isOverdue(sample(), end + kUndoGrace));
  EXPECT_TRUE(isOverdue(sample(), end + kUndoGrace + 1ns));
}

TEST(EntryTest, SaysWhoAndWhat) {
  EXPECT_THAT(inWords(sample()), HasSubstr("port_down of eth1 (0000:17:00.1) by al"));
}

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "a journal is root's";
    auto opened = Journal::open((folder_.path() / "deep" / "journal").string());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    journal_.emplace(*std::move(opened));
  }
  std::string in(const std::string& name) const { return journal_->folder() + "/" + name; }

  faultline::testing::TemporaryFolder folder_;
  std::optional<Journal> journal_;
};

TEST_F(JournalTest, KeepsEntriesUntilTheyAreRemoved) {
  Entry one = sample();
  Entry earlier = sample();
  earlier.id = "2";
  earlier.beganAt = 5;
  ASSERT_TRUE(journal_->write(one).ok());
  ASSERT_TRUE(journal_->write(earlier).ok());
  one.left = "why";
  ASSERT_TRUE(journal_->write(one).ok()) << "anew";
  auto kept = journal_->read();
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_THAT(kept->entries, ::testing::ElementsAre(earlier, one));
  EXPECT_TRUE(journal_->remove(one.id).ok());
  EXPECT_TRUE(journal_->remove(one.id).ok()) << "again";
  kept = journal_->read();
  ASSERT_TRUE(kept.ok());
  EXPECT_THAT(kept->entries, ::testing::ElementsAre(earlier));
  EXPECT_TRUE(kept->strange.empty());
}

TEST_F(JournalTest, IsMadeOnce) {
  ASSERT_TRUE(journal_->create(sample()).ok());
  Entry other = sample();
  other.user = "bob";
  EXPECT_EQ(journal_->create(other).code(), Code::kAlreadyExists);
  const auto kept = journal_->read();
  ASSERT_TRUE(kept.ok());
  EXPECT_THAT(kept->entries, ::testing::ElementsAre(sample()));
}

TEST_F(JournalTest, WhatOthersMayHaveWrittenIsNotBelieved) {
  ASSERT_TRUE(journal_->create(sample()).ok());
  const std::string path = in(sample().id + ".json");
  const auto why = [&] {
    const auto kept = journal_->read();
    if (!kept.ok() || kept->strange.size() != 1 || !kept->entries.empty()) return std::string();
    return kept->strange.front().why;
  };
  EXPECT_EQ(why(), "");
  for (const mode_t mode : {0664U, 0646U}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_THAT(why(), HasSubstr("others than root may write it")) << mode;
  }
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  ASSERT_EQ(::chown(path.c_str(), 1000, 0), 0);
  EXPECT_THAT(why(), HasSubstr("it belongs to user 1000"));
  ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  EXPECT_EQ(why(), "");
  std::filesystem::create_hard_link(path, folder_.path() / "another");
  EXPECT_THAT(why(), HasSubstr("it has another name as well"));
}

TEST_F(JournalTest, WhatIsNoEntryIsToldAndLeftAlone) {
  std::ofstream(in("notes.txt")) << "hello";
  std::ofstream(in("1.json")) << encode(sample()).substr(0, 100);
  std::ofstream(in("2.json")) << encode(sample());
  std::filesystem::create_symlink("/etc/passwd", in("3.json"));
  std::ofstream(in("4.json.1-0")) << "cut";  // of a writer that was killed
  const auto kept = journal_->read();
  ASSERT_TRUE(kept.ok());
  EXPECT_TRUE(kept->entries.empty());
  ASSERT_EQ(kept->strange.size(), 4u);
  EXPECT_THAT(kept->strange[1].why, HasSubstr("under another name"));
  EXPECT_FALSE(kept->strange[3].damaged) << "it was never an entry";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(kept->strange[i].damaged) << i;
  EXPECT_TRUE(std::filesystem::exists(in("1.json")));
}

TEST_F(JournalTest, OneAtATimeDecides) {
  auto lock = journal_->lock(1s);
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(journal_->lock(10ms).status().code(), Code::kDeadlineExceeded);
  lock->reset();
  EXPECT_TRUE(journal_->lock(10ms).ok());
}

TEST_F(JournalTest, OthersThanRootCannotHoldItsLock) {
  for (auto place = std::filesystem::path(journal_->folder()); place != folder_.path();
       place = place.parent_path()) {
    ASSERT_EQ(::chmod(place.c_str(), 0755), 0);
  }
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  const std::string path = in("lock");
  std::ofstream(path) << "";  // as an earlier faultline has made it
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  ASSERT_TRUE(journal_->lock(1s).ok());
  constexpr uid_t kNobody = 65534;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(2);
    ::_exit(::open(path.c_str(), O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(JournalTest, OthersThanRootMayNotChangeIt) {
  std::filesystem::permissions(journal_->folder(), std::filesystem::perms::all);
  EXPECT_EQ(Journal::open(journal_->folder()).status().code(), Code::kPermissionDenied);
}

TEST(HolderTest, LivesAsLongAsItsProcess) {
  Entry entry = sample();
  entry.bootId = currentBoot();
  entry.holder = holderOf(::getpid());
  EXPECT_NE(entry.holder.started, 0u);
  EXPECT_TRUE(isHeld(entry));
  ++entry.holder.started;
  EXPECT_FALSE(isHeld(entry)) << "a later process of that number";
  entry.holder = holderOf(::getpid());
  entry.bootId = "another";
  EXPECT_FALSE(isHeld(entry));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_EQ(holderOf(child).started, 0u) << "it has ended, and nobody has waited for it";
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(holderOf(child).started, 0u);
}

}  // namespace
}  // namespace faultline::safety
