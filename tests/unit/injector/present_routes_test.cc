// Routes to one destination that stand behind one another: which is which, and what puts them back
// in their order.
#include "injector/netlink/present_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "injector/netlink/configuration_gap.h"
#include "tests/unit/injector/netlink_messages.h"

namespace faultline::netlink {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Entries = std::vector<ConfigurationEntry>;
using enum RoutePlace;

constexpr int kThird = 7;
constexpr int kFourth = 8;

ConfigurationEntry over(std::initializer_list<int> interfaces, RoutePlace place = kBefore) {
  Belongings of{.ifindex = kPort};
  const Message any = multipath({kPort});
  of.frames.insert(partsOf(*entryOf(nlmsg_hdr(any.get()), of)).frame);
  const Message message = multipath(interfaces);
  ConfigurationEntry made = *entryOf(nlmsg_hdr(message.get()), of);
  made.place = place;
  return made;
}

TEST(PresentRoutes, OneWhoseLegsAreAPartOfAnotherOnesIsNotTakenForIt) {
  const ConfigurationEntry one = over({kPort});
  const ConfigurationEntry two = over({kPort, kOther});
  for (const Entries& noted : {Entries{one, two}, Entries{two, one}}) {
    const PresentRoutes left({two}, kPort, noted);
    EXPECT_FALSE(left.has(one));
    EXPECT_TRUE(left.has(two));
  }
}

TEST(PresentRoutes, ALegIsAddedToOneThatStandsAmongOthersInItsPlace) {
  const Entries noted = {over({kPort, kThird}), over({kPort, kFourth})};
  const Entries left = {over({kThird}), over({kFourth})};
  const PresentRoutes present(left, kPort, noted);
  for (std::size_t i = 0; i < noted.size(); ++i) {
    EXPECT_FALSE(present.has(noted[i]));
    const Repair repair = present.repair(noted[i]);
    ASSERT_EQ(repair.attempts.size(), 1u);
    EXPECT_EQ(repair.attempts[0].flags, NLM_F_CREATE) << "the kernel would replace the first";
    EXPECT_EQ(repair.attempts[0].bytes, noted[i].request.bytes);
    EXPECT_THAT(repair.removals, ElementsAre(removalOf(left[i])));
  }
}

TEST(PresentRoutes, OnesBeforeOthersAreAddedAnewWithAllThatStoodBeforeThem) {
  const Entries noted = {over({kThird, kPort}), over({kFourth, kPort}), over({kPort})};
  const PresentRoutes present({noted[2], noted[0], noted[1]}, kPort, noted);
  EXPECT_FALSE(present.isMisplaced(noted[2]));
  for (const std::size_t one : {0, 1}) {
    EXPECT_TRUE(present.isMisplaced(noted[one]));
    const Repair repair = present.repair(noted[one]);
    EXPECT_EQ(repair.removals.back(), removalOf(noted[one]));
    EXPECT_EQ(repair.attempts.front().flags, NLM_F_CREATE);
  }
  const PresentRoutes in_order(noted, kPort, noted);
  for (const ConfigurationEntry& one : noted) EXPECT_FALSE(in_order.isMisplaced(one));
}

TEST(PresentRoutes, OnesBehindOthersAreAddedAnewWithAllThatStoodBehindThem) {
  const Entries noted = {over({kThird, kPort}, kBehind), over({kFourth, kPort}, kBehind),
                         over({kPort}, kBehind)};
  const PresentRoutes present({noted[2], noted[0], noted[1]}, kPort, noted);
  EXPECT_FALSE(present.isMisplaced(noted[0]));
  EXPECT_FALSE(present.isMisplaced(noted[1]));
  EXPECT_TRUE(present.isMisplaced(noted[2]));
  EXPECT_EQ(present.repair(noted[2]).attempts.front().flags, NLM_F_CREATE | NLM_F_APPEND);
}

TEST(PresentRoutes, TheKernelIsNotLedToTakeOneForAnother) {
  const ConfigurationEntry longer = over({kPort, kThird});
  const ConfigurationEntry shorter = over({kPort});
  const auto removals = [&](const Entries& present, const Entries& noted,
                            const ConfigurationEntry& of) {
    return PresentRoutes(present, kPort, noted).repair(of).removals;
  };
  // What is to remove the longer one removes the shorter one, if that comes first.
  EXPECT_THAT(removals({shorter, longer}, {longer, shorter}, longer),
              ElementsAre(removalOf(shorter), removalOf(longer)));
  EXPECT_THAT(removals({longer}, {longer, shorter}, shorter), ElementsAre(removalOf(longer)))
      << "before the shorter one is there";
  EXPECT_THAT(removals({longer}, {shorter, longer}, shorter), IsEmpty()) << "it goes before it";
  // Of one that was not noted nobody would put it back; others behind which it stands are not
  // known.
  const ConfigurationEntry third = over({kPort, kThird, kFourth});
  EXPECT_THAT(removals({shorter, third, longer}, {longer, third}, longer), IsEmpty());
  const Entries behind = {over({kThird, kPort}, kBehind), over({kFourth, kPort}, kBehind)};
  EXPECT_THAT(removals({behind[1], behind[0]}, behind, behind[1]), IsEmpty());
}

TEST(PresentRoutes, ThoseBeforeOthersArePutBackFromTheLastToTheFirst) {
  Entries entries = {over({kPort}, kAlone), over({kPort, kThird}), over({kPort, kFourth}),
                     over({kPort, kOther}, kBehind)};
  const Entries before = entries;
  orderForRepair(entries);
  EXPECT_THAT(entries, ElementsAre(before[0], before[2], before[1], before[3]));
  EXPECT_TRUE(orderMatters(entries));
  EXPECT_FALSE(orderMatters({before[0], *entry(address(kPort))}));
}

}  // namespace
}  // namespace faultline::netlink
