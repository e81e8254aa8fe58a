// What is missing of a configuration and what puts it back, and both in the words of `ip`.
#include "injector/netlink/configuration_gap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include "injector/netlink/configuration_watch.h"
#include "injector/netlink/entry_words.h"
#include "injector/netlink/request_bytes.h"
#include "tests/unit/injector/netlink_messages.h"

namespace faultline::netlink {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Entries = std::vector<ConfigurationEntry>;

PresentEntries presentEntries(const Entries& entries) { return {entries, kPort, {kObject}}; }

ConfigurationEntry changedTo(const ConfigurationEntry& entry, const RepairRequest& request) {
  return {entry.kind, {request.bytes}, entry.place};
}

ConfigurationEntry routeFrom(const char* source, int family = AF_INET6) {
  rtmsg header{};
  header.rtm_family = static_cast<unsigned char>(family);
  header.rtm_protocol = RTPROT_BOOT;
  Message message(RTM_NEWROUTE, 0, header);
  in6_addr binary{};
  ::inet_pton(family, source, &binary);
  message.put(RTA_OIF, std::uint32_t{kPort});
  message.put(RTA_PREFSRC, &binary, family == AF_INET ? sizeof(in_addr) : sizeof binary);
  return *entry(message);
}

TEST(ConfigurationGap, NothingIsMissingOfWhatIsThere) {
  const Entries all = entriesOf(everything());
  const PresentEntries known = presentEntries(all);
  for (const ConfigurationEntry& entry : all) EXPECT_TRUE(known.has(entry)) << inWords(entry);
  const PresentEntries nothing = presentEntries({});
  for (const ConfigurationEntry& entry : all) EXPECT_FALSE(nothing.has(entry)) << inWords(entry);
}

TEST(ConfigurationGap, AnAddressWithAnotherLifeOrANeighbourElsewhereIsThere) {
  const Entries noted = {*entry(address(kPort, 100)), *entry(neighbour(kPort, NUD_PERMANENT))};
  ndmsg header{};
  header.ndm_family = AF_INET;
  header.ndm_ifindex = kPort;
  header.ndm_state = NUD_PERMANENT;
  Message elsewhere(RTM_NEWNEIGH, 0, header);
  elsewhere.put(NDA_DST, ip("10.1.0.2")).put(NDA_LLADDR, "\2\2\2\2\2\2", 6);
  const Entries present{*entry(address(kPort, 50)), *entry(elsewhere)};
  for (const ConfigurationEntry& one : noted) EXPECT_TRUE(presentEntries(present).has(one));
}

TEST(ConfigurationGap, ALegIsAddedToWhatIsLeftOfARoute) {
  const ConfigurationEntry noted = *entry(multipath({kOther, kPort, 7}));
  Belongings of = whatToLookFor({noted}, kPort);
  EXPECT_EQ(of.frames.size(), 1u);
  // One is left, and somebody has added another one.
  const Message left = multipath({7, 8});
  const ConfigurationEntry present = *entryOf(nlmsg_hdr(left.get()), of);
  const PresentEntries known = presentEntries({present});
  EXPECT_FALSE(known.has(noted));
  const Repair repair = known.repair(noted);
  ASSERT_EQ(repair.attempts.size(), 1u);
  EXPECT_EQ(repair.attempts[0].flags, NLM_F_CREATE | NLM_F_REPLACE);
  EXPECT_EQ(changedTo(noted, repair.attempts[0]), *entry(multipath({kPort, 7, 8})));
}

TEST(ConfigurationGap, ARouteThatIsGoneComesBackWholeOrWithItsOwnLegs) {
  const ConfigurationEntry noted = *entry(multipath({kOther, kPort}));
  const Repair repair = presentEntries({}).repair(noted);
  ASSERT_EQ(repair.attempts.size(), 2u);
  EXPECT_EQ(repair.attempts[0].bytes, noted.request.bytes);
  const RouteParts alone = partsOf(changedTo(noted, repair.attempts[1]));
  ASSERT_EQ(alone.legs.size(), 1u);
  EXPECT_EQ(alone.legs[0].ifindex, kPort);
  EXPECT_EQ(alone.frame, partsOf(noted).frame);
  EXPECT_TRUE(alone.legs[0].samePath(partsOf(noted).legs[1])) << "though it has no weight";
  EXPECT_TRUE(presentEntries({changedTo(noted, repair.attempts[1])}).has(noted));
}

TEST(ConfigurationGap, ARouteGoesWhereItWas) {
  ConfigurationEntry noted = *entry(route(kPort));
  const auto flags = [&](RoutePlace place) {
    noted.place = place;
    return presentEntries({}).repair(noted).attempts.front().flags;
  };
  EXPECT_EQ(flags(RoutePlace::kAlone), NLM_F_CREATE | NLM_F_EXCL);
  EXPECT_EQ(flags(RoutePlace::kBefore), NLM_F_CREATE);
  EXPECT_EQ(flags(RoutePlace::kBehind), NLM_F_CREATE | NLM_F_APPEND);
}

std::vector<std::uint32_t> idsOf(const ConfigurationEntry& noted, const RepairRequest& request) {
  std::vector<std::uint32_t> ids;
  for (const GroupMember& member : membersOf(changedTo(noted, request))) ids.push_back(member.id);
  return ids;
}

TEST(ConfigurationGap, AGroupGetsItsMemberBackAndKeepsThoseOfOthers) {
  const ConfigurationEntry noted = *entry(group({kObject, 98, 99}), {kObject});
  // 98 was removed by somebody, 97 was added.
  const ConfigurationEntry left = *entry(group({99, 97}), {kGroup});
  const PresentEntries known = presentEntries({left});
  EXPECT_FALSE(known.has(noted));
  const Repair repair = known.repair(noted);
  EXPECT_EQ(repair.attempts.front().flags, NLM_F_CREATE | NLM_F_REPLACE);
  EXPECT_THAT(idsOf(noted, repair.attempts.front()), ElementsAre(kObject, 99, 97));
  EXPECT_TRUE(presentEntries({*entry(group({97, kObject}), {kObject})}).has(noted));
}

TEST(ConfigurationGap, AGroupThatIsGoneComesBackWholeOrWithItsOwnMembers) {
  const ConfigurationEntry noted = *entry(group({98, kObject}), {kObject});
  const Repair repair = presentEntries({}).repair(noted);
  ASSERT_EQ(repair.attempts.size(), 2u);
  EXPECT_THAT(idsOf(noted, repair.attempts[0]), ElementsAre(98, kObject));
  EXPECT_THAT(idsOf(noted, repair.attempts[1]), ElementsAre(kObject));
}

TEST(ConfigurationGap, AnAddressOfIpv6ComesBackAtOnceAndThenAsItWas) {
  const auto flagsOf = [](const ConfigurationEntry& noted, const RepairRequest& request) {
    const RequestMessage message(RTM_NEWADDR, changedTo(noted, request).request.bytes);
    return Attributes<IFA_MAX>(message.get(), sizeof(ifaddrmsg)).value<std::uint32_t>(IFA_FLAGS);
  };
  const ConfigurationEntry usual = *entry(address6("fd01::1", 0));
  Repair repair = presentEntries({}).repair(usual);
  EXPECT_EQ(flagsOf(usual, repair.attempts.front()), std::uint32_t{IFA_F_NODAD});
  ASSERT_EQ(repair.afterwards.size(), 1u);
  EXPECT_EQ(flagsOf(usual, repair.afterwards.front()), 0u);
  const ConfigurationEntry duplicate = *entry(address6("fd01::1", IFA_F_DADFAILED));
  repair = presentEntries({}).repair(duplicate);
  EXPECT_EQ(flagsOf(duplicate, repair.attempts.front()), std::uint32_t{IFA_F_DADFAILED});
  EXPECT_THAT(repair.afterwards, IsEmpty());
}

TEST(ConfigurationGap, AnAutomaticOrTemporaryAddressIsNotNoted) {
  EXPECT_TRUE(entry(address6("fe80::1", 0)));
  EXPECT_FALSE(entry(address6("fe80::1", 0, IFAPROT_KERNEL_LL)));
  EXPECT_FALSE(entry(address6("fe80::1", IFA_F_STABLE_PRIVACY)));
  EXPECT_TRUE(entry(address6("fd01::1", IFA_F_STABLE_PRIVACY))) << "as NetworkManager sets it";
  EXPECT_FALSE(entry(address6("fd01::1", IFA_F_TEMPORARY)));
}

TEST(ConfigurationGap, AddressesAreAddedAnewFromTheFirstThatStandsElsewhere) {
  const ConfigurationEntry one = *entry(address(kPort));
  const ConfigurationEntry two = *entry(address(kPort, ~0U, "10.1.0.2"));
  const ConfigurationEntry three = *entry(address(kPort, ~0U, "10.1.0.3"));
  const ConfigurationEntry second = *entry(address(kPort, ~0U, "10.1.0.2", IFA_F_SECONDARY));
  const ConfigurationEntry foreign = *entry(address(kPort, ~0U, "10.1.0.9"));
  EXPECT_THAT(toAddAnew({one, two}, {one, foreign, two}, AF_INET), IsEmpty());
  EXPECT_THAT(toAddAnew({one, two}, {foreign, two}, AF_INET), IsEmpty())
      << "what is missing has no place";
  EXPECT_THAT(toAddAnew({one, two}, {two, one}, AF_INET), ElementsAre(one, two));
  EXPECT_THAT(toAddAnew({one, two}, {two, one}, AF_INET6), IsEmpty());
  EXPECT_THAT(toAddAnew({one, two, three}, {one, three, two}, AF_INET), ElementsAre(two, three));
  EXPECT_THAT(toAddAnew({one, two}, {one, foreign, second}, AF_INET), ElementsAre(two, foreign))
      << "it was a primary one";
  EXPECT_THAT(toAddAnew({one, second}, {one, two}, AF_INET), IsEmpty());
}

// They were removed and added anew, or stood in between all the time.
TEST(ConfigurationGap, OrderIsThatOfNotedAddressesWhereverOthersStand) {
  const ConfigurationEntry one = *entry(address(kPort));
  const ConfigurationEntry two = *entry(address(kPort, ~0U, "10.1.0.2"));
  const ConfigurationEntry foreign = *entry(address(kPort, ~0U, "10.1.0.9"));
  const ConfigurationEntry one6 = *entry(address6("fd01::1", 0));
  const ConfigurationEntry two6 = *entry(address6("fd01::2", 0));
  const ConfigurationEntry foreign6 = *entry(address6("fd01::9", 0));
  const Entries noted{one, two, one6, two6};
  const Entries present{one, foreign, two, foreign6, one6, two6};
  for (const int family : {AF_INET, AF_INET6}) {
    EXPECT_THAT(toAddAnew(noted, present, family), IsEmpty());
  }
  EXPECT_THAT(foreignTo(noted, present, kPort), ElementsAre(foreign, foreign6));
  EXPECT_THAT(withForeign(noted, present, kPort),
              ElementsAre(one, two, one6, two6, foreign, foreign6));
  EXPECT_THAT(toAddAnew(noted, {foreign6, two6, one6}, AF_INET6), ElementsAre(one6, two6));
}

TEST(ConfigurationGap, WhatIsOfAnotherFamilyDoesNotGoWithAddresses) {
  EXPECT_TRUE(mayGoWithAddresses({*entry(address(kPort))}, AF_INET));
  EXPECT_FALSE(mayGoWithAddresses({*entry(address(kPort))}, AF_INET6));
  EXPECT_TRUE(mayGoWithAddresses({routeFrom("fd01::1")}, AF_INET6));
  EXPECT_TRUE(mayGoWithAddresses({*entry(group(), {kObject})}, AF_INET6)) << "of objects of it";
  EXPECT_FALSE(mayGoWithAddresses({}, AF_INET));
}

TEST(ConfigurationGap, OnlyIpv6RoutesFromAddressesThatAreAddedAnewGoWithThem) {
  const ConfigurationEntry one = *entry(address6("fd01::1", 0));
  const ConfigurationEntry four = *entry(address(kPort));
  const ConfigurationEntry from_one = routeFrom("fd01::1");
  const Entries present{one,
                        four,
                        *entry(route(kPort)),
                        from_one,
                        routeFrom("fd01::2"),
                        routeFrom("10.1.0.1", AF_INET)};
  EXPECT_THAT(routesFrom({one, four}, present), ElementsAre(from_one));
  EXPECT_THAT(routesFrom({four}, present), IsEmpty());
}

TEST(ConfigurationGap, TwoPrioritiesInOneNetworkAreRivals) {
  const ConfigurationEntry one = *entry(address6("fd01::1", 0));
  const ConfigurationEntry two = *entry(address6("fd01::2", 0, 0, 300));
  const ConfigurationEntry elsewhere = *entry(address6("fd02::2", 0, 0, 300));
  EXPECT_TRUE(hasRival(one, {one, two}));
  EXPECT_TRUE(hasRival(two, {one, two}));
  EXPECT_FALSE(hasRival(one, {one, elsewhere}));
}

TEST(EntryWords, AreThoseOfIp) {
  const InterfaceNames names{{kPort, "r0"}};
  std::vector<std::string> words;
  for (const ConfigurationEntry& one : entriesOf(everything()))
    words.push_back(inWords(one, names));
  EXPECT_THAT(words,
              ElementsAre("address 10.1.0.1/24 dev r0", "nexthop id 11 via 10.1.0.2 dev r0",
                          "nexthop id 12 group 11/99,4", "route 10.90.0.0/16 via 10.1.0.2 dev r0",
                          "route 10.94.0.0/16 nexthop dev if6 weight 3 nexthop dev r0 weight 3",
                          "route 10.95.0.0/16 nhid 12", "neighbour 10.1.0.2 dev r0",
                          "neighbour proxy 10.1.0.2 dev r0"));
}

// Also damaged ones have words, or none.
TEST(EntryWords, OfBytesFromAnywhereDoNotCrash) {
  for (const ConfigurationEntry& one : entriesOf(everything())) {
    for (std::size_t length = 0; length <= one.request.bytes.size(); ++length) {
      ConfigurationEntry cut = one;
      cut.request.bytes.resize(length);
      EXPECT_FALSE(inWords(cut).empty());
    }
    for (std::size_t bit = 0; bit < 8 * one.request.bytes.size(); ++bit) {
      ConfigurationEntry flipped = one;
      char& byte = flipped.request.bytes[bit / 8];
      byte = static_cast<char>(byte ^ (1 << (bit % 8)));
      EXPECT_FALSE(inWords(flipped).empty());
    }
  }
}

TEST(ConfigurationWatch, OnlyWhatIsOfTheInterfaceAndNotLearnedIsAChange) {
  const auto isChange = [](const Message& message, int ifindex = kPort) {
    return isChangeOf(nlmsg_hdr(message.get()), ifindex);
  };
  for (const Message& message : everything()) EXPECT_TRUE(isChange(message));
  EXPECT_FALSE(isChange(address(kPort), kOther));
  EXPECT_FALSE(isChange(nexthop(kPort), kOther));
  EXPECT_FALSE(isChange(route(kPort), kOther));
  EXPECT_FALSE(isChange(multipath({kPort, kPort}), kOther));
  EXPECT_FALSE(isChange(neighbour(kPort, NUD_PERMANENT), kOther));
  EXPECT_FALSE(isChange(neighbour(kPort, NUD_REACHABLE)));
  ifinfomsg header{};
  header.ifi_index = kPort;
  EXPECT_TRUE(isChange(Message(RTM_NEWLINK, 0, header)));
  EXPECT_FALSE(isChange(Message(RTM_NEWLINK, 0, header), kOther));
  EXPECT_FALSE(isChange(Message(RTM_NEWRULE, 0, header)));
  EXPECT_FALSE(isChange(Message(RTM_NEWNEIGH, 0, std::string_view()))) << "it says nothing";
}

}  // namespace
}  // namespace faultline::netlink
