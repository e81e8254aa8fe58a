#include "injector/safety/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace faultline::safety {
namespace {

using ::testing::HasSubstr;

const Target kEth0{"eth0", 2, "02:00:00:00:00:02", "02:00:00:00:00:02", "0000:17:00.0", 1};
const Target kEth1{"eth1", 3, "02:00:00:00:00:03", "02:00:00:00:00:03", "0000:17:00.1", 1};
const Target kVeth{"veth1", 7, "02:00:00:00:00:07", "", "", 1};
const std::vector<Target> kAll{kEth0, kEth1, kVeth};

Target changed(Target target, const std::function<void(Target&)>& change) {
  change(target);
  return target;
}

TEST(TargetTest, IsFoundByNamePlaceAndAddress) {
  EXPECT_EQ(*choose(kAll, {.interface = "eth1"}), kEth1);
  EXPECT_EQ(*choose(kAll, {.pci = "0000:17:00.0"}), kEth0);
  EXPECT_EQ(*choose(kAll, {.mac = "02:00:00:00:00:07"}), kVeth);
  const auto typo = choose(kAll, {.interface = "eth11"});
  EXPECT_EQ(typo.status().code(), Code::kNotFound);
  EXPECT_THAT(typo.status().message(), HasSubstr("there is no interface eth11 here (did you mean"));
  EXPECT_EQ(choose(kAll, {.pci = "0000:18:00.0"}).status().code(), Code::kNotFound);
  EXPECT_EQ(choose({}, {.interface = "eth0"}).status().code(), Code::kNotFound);
}

TEST(TargetTest, OneOfSeveralMustBeNamed) {
  const Target sister =
      changed(kEth0, [](Target& one) { one.interface = "eth0r", one.ifindex = 9; });
  const auto both = choose({kEth0, sister}, {.pci = kEth0.pci});
  EXPECT_EQ(both.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(both.status().message(), HasSubstr("0000:17:00.0 are eth0 and eth0r"));
}

TEST(TargetTest, AnAdapterIsTheSameWhateverItIsCalled) {
  for (const auto& change : std::vector<std::function<void(Target&)>>{
           [](Target&) {}, [](Target& one) { one.interface = "renamed"; },
           [](Target& one) { one.ifindex = 99; },
           [](Target& one) { one.mac = "06:00:00:00:00:00"; },
           [](Target& one) {
             one.interface = "renamed";
             one.ifindex = 99;
             one.mac = "06:00:00:00:00:00";
           }}) {
    const Target now = changed(kEth0, change);
    const auto same = sameOf({kEth1, now, kVeth}, kEth0);
    ASSERT_TRUE(same.ok()) << same.status().message();
    EXPECT_EQ(*same, now);
  }
}

TEST(TargetTest, AVirtualInterfaceKeepsTwoOfThree) {
  const Target renamed = changed(kVeth, [](Target& one) { one.interface = "renamed"; });
  EXPECT_EQ(*sameOf({kEth0, renamed}, kVeth), renamed);
  const Target moved = changed(kVeth, [](Target& one) { one.ifindex = 70; });
  EXPECT_EQ(*sameOf({kEth0, moved}, kVeth), moved);
}

TEST(TargetTest, WhoeverTookItsNameIsAnotherOne) {
  // The names are swapped.
  const Target was_one = changed(kEth1, [](Target& one) { one.interface = "eth0"; });
  const Target was_zero = changed(kEth0, [](Target& one) { one.interface = "eth1"; });
  EXPECT_EQ(*sameOf({was_one, was_zero}, kEth0), was_zero);
  const auto taken = sameOf({was_one}, kEth0);
  EXPECT_EQ(taken.status().code(), Code::kNotFound);
  EXPECT_THAT(
      taken.status().message(),
      HasSubstr("is gone, and what is called eth0 now is another one (eth0 (0000:17:00.1))"));
  const Target new_veth = changed(kVeth, [](Target& one) { one.mac = "02:00:00:00:00:08"; });
  EXPECT_FALSE(sameOf({new_veth}, kVeth).ok()) << "of the same name and index";
  EXPECT_THAT(sameOf({kEth1}, kEth0).status().message(), HasSubstr("eth0 (0000:17:00.0) is gone"));
}

TEST(TargetTest, AnotherNamespaceIsAnotherPlace) {
  const Target elsewhere = changed(kVeth, [](Target& one) { one.netNamespace = 2; });
  const auto same = sameOf({elsewhere}, kVeth);
  EXPECT_EQ(same.status().code(), Code::kNotFound);
  EXPECT_THAT(same.status().message(), HasSubstr("another network namespace (net:[1])"));
}

TEST(TargetTest, OfSeveralFunctionsOfOneAdapterTheIndexDecides) {
  const Target sister = changed(kEth0, [](Target& one) { one.interface = "rep", one.ifindex = 9; });
  EXPECT_EQ(*sameOf({sister, kEth0}, kEth0), kEth0);
  const Target moved = changed(kEth0, [](Target& one) { one.ifindex = 10; });
  EXPECT_FALSE(sameOf({sister, moved}, kEth0).ok());
}

TEST(TargetTest, KnowsAddresses) {
  EXPECT_TRUE(isPciAddress("0000:17:00.0"));
  for (const char* no : {"17:00.0", "0000:17:00.00", "0000:1g:00.0", "0000-17:00.0", "eth1", ""}) {
    EXPECT_FALSE(isPciAddress(no)) << no;
  }
  for (const char* yes : {"10.0.0.1", "fd00::1", "fe80::1%eth0", "::ffff:10.0.0.1"}) {
    EXPECT_TRUE(isAddress(yes)) << yes;
  }
  for (const char* no : {"host", "10.0.0", "10.0.0.1%eth0", "", "10.0.0.1/24"}) {
    EXPECT_FALSE(isAddress(no)) << no;
  }
}

}  // namespace
}  // namespace faultline::safety
