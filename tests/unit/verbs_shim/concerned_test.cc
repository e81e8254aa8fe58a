#include "injector/verbs/shim/concerned.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace faultline::testing {
namespace {

using injector::verbs::shim::Concerned;

TEST(ConcernedTest, EachThatWasAddedIsThereUntilItIsCleared) {
  Concerned concerned;
  std::vector<std::unique_ptr<int>> objects;
  for (int i = 0; i < 10'000; ++i) objects.push_back(std::make_unique<int>(i));  // more than places
  for (std::uint32_t i = 0; i < objects.size(); ++i) {
    const void* const object = objects[i].get();
    i % 3 == 0 ? concerned.addHolding(object) : concerned.add(object);
    concerned.add(objects[0].get(), i);
  }
  for (std::uint32_t i = 0; i < objects.size(); ++i) {
    EXPECT_TRUE(concerned.has(objects[i].get()));
    EXPECT_TRUE(concerned.has(objects[0].get(), i));
    EXPECT_TRUE(i % 3 != 0 || concerned.mayHold(objects[i].get())) << "though others came after";
  }
  concerned.clear();
  for (const auto& object : objects) {
    EXPECT_FALSE(concerned.has(object.get()));
    EXPECT_FALSE(concerned.mayHold(object.get()));
  }
}

TEST(ConcernedTest, OneThatWasAddedStandsForFewOthers) {
  Concerned concerned;
  std::vector<std::unique_ptr<int>> objects;
  for (int i = 0; i < 1000; ++i) objects.push_back(std::make_unique<int>(i));
  concerned.add(objects[0].get());
  concerned.add(objects[0].get(), 0);
  EXPECT_FALSE(concerned.mayHold(objects[0].get())) << "it was added without that";
  int too_many = 0;
  for (std::uint32_t i = 1; i < objects.size(); ++i) {
    too_many += concerned.has(objects[i].get());
    too_many += concerned.has(objects[0].get(), i);
    EXPECT_FALSE(concerned.mayHold(objects[i].get()));
  }
  EXPECT_LT(too_many, 20);
}

TEST(ConcernedTest, AllIsEveryOne) {
  Concerned concerned;
  const int holding = 0;
  concerned.addHolding(&holding);
  concerned.addAll();
  for (std::uint32_t i = 0; i < 10'000; ++i) EXPECT_TRUE(concerned.has(&concerned, i));
  EXPECT_TRUE(concerned.mayHold(&holding));
  concerned.clear();
  concerned.addAll();
  EXPECT_FALSE(concerned.mayHold(&holding)) << "all are concerned, none holds";
}

}  // namespace
}  // namespace faultline::testing
