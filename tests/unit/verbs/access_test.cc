#include "injector/verbs/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace faultline::injector::verbs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr pid_t kProcess = 7;
constexpr uid_t kUser = 1000;
constexpr uid_t kOther = 1001;
constexpr std::uint64_t kPtrace = std::uint64_t{1} << 19;  // CAP_SYS_PTRACE

AccessFacts ofSameUser() {
  return {.caller = kUser, .real = kUser, .effective = kUser, .saved = kUser, .dumpable = true};
}

TEST(VerbsAccessTest, AnotherUsersProcessIsAnotherUsers) {
  AccessFacts facts = ofSameUser();
  facts.caller = kOther;
  EXPECT_THAT(whyRefused(kProcess, facts), HasSubstr("process 7 is another user's"));
  facts.dumpable = false;
  EXPECT_THAT(whyRefused(kProcess, facts), HasSubstr("process 7 is another user's"));
}

TEST(VerbsAccessTest, OfTheSameUserItIsDumpabilityOrCapabilitiesOrUnknown) {
  AccessFacts facts = ofSameUser();
  EXPECT_THAT(whyRefused(kProcess, facts), HasSubstr("has other groups"));
  facts.permittedCapabilities = 0x6;
  facts.callerCapabilities = 0x2;
  EXPECT_THAT(whyRefused(kProcess, facts), HasSubstr("capabilities that this one lacks (0x4)"));
  facts.dumpable = false;
  EXPECT_THAT(whyRefused(kProcess, facts), HasSubstr("it is not dumpable, since"));
  EXPECT_THAT(whyRefused(kProcess, facts), HasSubstr("file capabilities"));
  EXPECT_THAT(whyRefused(kProcess, facts), HasSubstr("as root with CAP_SYS_PTRACE"));
}

TEST(VerbsAccessTest, ASetIdProgramIsToldWhicheverOfItsUsersIsOurs) {
  for (uid_t AccessFacts::*const user :
       {&AccessFacts::real, &AccessFacts::effective, &AccessFacts::saved}) {
    AccessFacts facts = ofSameUser();
    facts.*user = 0;
    EXPECT_THAT(whyRefused(kProcess, facts), HasSubstr("set-id programs"));
    EXPECT_THAT(whyRefused(kProcess, facts), Not(HasSubstr("another user's")));
  }
}

TEST(VerbsAccessTest, RootIsNotToldThatItNeedsToBeRoot) {
  AccessFacts facts = ofSameUser();
  facts.caller = 0;
  EXPECT_THAT(whyRefused(kProcess, facts), HasSubstr("CAP_SYS_PTRACE, which this one lacks"));
  facts.callerCapabilities = kPtrace;
  EXPECT_THAT(whyRefused(kProcess, facts), HasSubstr("another user namespace"));
  EXPECT_THAT(whyRefused(kProcess, facts), Not(HasSubstr("lacks")));
}

TEST(VerbsAccessTest, TheFactsOfThisProcessAreItsOwn) {
  const AccessFacts facts = readAccessFacts(::getpid());
  EXPECT_EQ(facts.caller, ::geteuid());
  EXPECT_EQ(facts.real, ::getuid());
  EXPECT_EQ(facts.effective, ::geteuid());
  EXPECT_EQ(facts.permittedCapabilities & facts.callerCapabilities, facts.callerCapabilities);
  EXPECT_EQ(facts.dumpable.has_value(), ::geteuid() != 0);
}

}  // namespace
}  // namespace faultline::injector::verbs
