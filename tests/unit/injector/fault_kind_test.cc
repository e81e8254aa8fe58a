#include "injector/fault_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "injector/faults/registry.h"

namespace faultline::injector {
namespace {

using ::testing::HasSubstr;

const FaultKind& kind(std::string_view name) { return *findFaultKind(name); }

TEST(FaultKindTest, NamesAreUniqueAndEveryFaultIsDocumented) {
  std::set<std::string_view> names;
  for (const FaultKind& fault : faultKinds()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    for (const auto text : {fault.summary, fault.sees, fault.evidence, fault.undo}) {
      EXPECT_FALSE(text.empty()) << fault.name;
    }
    for (const ParameterSpec& spec : fault.parameters) EXPECT_FALSE(spec.meaning.empty());
    EXPECT_EQ(findFaultKind(fault.name), &fault);
    EXPECT_NE(fault.make == nullptr, fault.makeForDevice == nullptr) << fault.name;
    EXPECT_EQ(fault.makeForDevice != nullptr, fault.target == TargetKind::kRdma) << fault.name;
  }
  EXPECT_GE(names.size(), 25u);
  EXPECT_EQ(findFaultKind("meteor"), nullptr);
}

TEST(FaultKindTest, AFlapShorterThanADetectionMayBeFoundInThreeWays) {
  EXPECT_THAT(describeFault(kind("path_flap"), ""),
              HasSubstr("struck: path, or rail, or nothing;"));
  EXPECT_THAT(describeFault(kind("port_flap"), ""), HasSubstr("struck: local_nic, or nothing;"));
}

TEST(FaultKindTest, AFaultIsFoundDifferentlyAtItsEnds) {
  const Signature down = signatureOf(kind("port_down"), {{"how", "admin"}});
  EXPECT_EQ(down.own.cause, "local_nic");
  EXPECT_EQ(down.peer.cause, "remote_nic");
  const Signature out = signatureOf(kind("one_way_loss"), {{"direction", "out"}});
  EXPECT_EQ(out.own.deadDirection, "outgoing");
  EXPECT_EQ(out.peer.deadDirection, "incoming");
  const Signature in = signatureOf(kind("one_way_loss"), {{"direction", "in"}});
  EXPECT_EQ(in.own.deadDirection, "incoming");
  EXPECT_EQ(in.peer.deadDirection, "outgoing");
  EXPECT_EQ(signatureOf(kind("throttle"), {{"rate", "1%"}}).own.cause, "degraded");
  EXPECT_THAT(describeFault(kind("throttle"), ""), HasSubstr("struck: degraded"));
  EXPECT_THAT(describeFault(kind("one_way_loss"), ""), HasSubstr("path (incoming)"));
}

TEST(FaultKindTest, ShortNamesTellWhatIsNotUsual) {
  EXPECT_EQ(shortName(kind("blackhole"), {}), "blackhole");
  EXPECT_EQ(shortName(kind("port_down"), {{"how", "carrier"}}), "port_down carrier");
  EXPECT_EQ(shortName(kind("throttle"), {{"rate", "10%"}, {"direction", "both"}}), "throttle 10%");
  EXPECT_EQ(shortName(kind("throttle"), {{"rate", "10%"}, {"direction", "tx"}}), "throttle 10% tx");
}

TEST(FaultKindTest, EveryDefaultIsReadableAndSpelledAsItIsPrinted) {
  for (const FaultKind& fault : faultKinds()) {
    for (const ParameterSpec& spec : fault.parameters) {
      if (spec.required()) continue;
      const auto value = parseParameter(spec, spec.defaultText);
      ASSERT_TRUE(value.ok()) << fault.name << "." << spec.name << value.status().message();
      EXPECT_EQ(formatParameter(*value), spec.defaultText);
    }
  }
}

TEST(FaultKindTest, DefaultsFillWhatIsNotGiven) {
  const auto flap = FaultParameters::parse(kind("port_flap"), {{"period", "20ms"}});
  ASSERT_TRUE(flap.ok());
  EXPECT_EQ(flap->get<Duration>("period"), 20ms);
  EXPECT_EQ(flap->get<std::string>("how"), "carrier");
  EXPECT_EQ(flap->get<std::int64_t>("count"), 0);
  EXPECT_EQ(flap->get<Percent>("duty"), Percent{50});
}

TEST(FaultKindTest, RateIsARateOrAPercentage) {
  const auto rate = FaultParameters::parse(kind("throttle"), {{"rate", "40Mbit"}});
  ASSERT_TRUE(rate.ok());
  EXPECT_EQ(std::get<Rate>(rate->value("rate")), Rate{40'000'000});
  const auto percent = FaultParameters::parse(kind("throttle"), {{"rate", "12.5%"}});
  ASSERT_TRUE(percent.ok());
  EXPECT_EQ(std::get<Percent>(percent->value("rate")), Percent{12.5});
}

TEST(FaultKindTest, MistakesAreErrorsThatSayWhatIsPossible) {
  const auto message = [](std::string_view fault, const std::map<std::string, std::string>& texts) {
    const auto parsed = FaultParameters::parse(kind(fault), texts);
    EXPECT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument);
    return parsed.status().message();
  };
  EXPECT_THAT(message("throttle", {}), HasSubstr("needs the parameter 'rate'"));
  EXPECT_THAT(message("throttle", {{"rate", "0%"}}), HasSubstr("0.1% to 100%"));
  EXPECT_THAT(message("throttle", {{"rate", "1bit"}}), HasSubstr("slowest"));
  EXPECT_THAT(message("throttle", {{"rate", "40"}}), HasSubstr("no unit"));
  EXPECT_THAT(message("port_down", {{"how", "gently"}}), HasSubstr("carrier, admin"));
  EXPECT_THAT(message("port_down", {{"why", "x"}}), HasSubstr("no parameter 'why'; it has how"));
  EXPECT_THAT(message("blackhole", {{"how", "admin"}}), HasSubstr("it has none"));
  EXPECT_THAT(message("port_flap", {{"count", "2.5"}}), HasSubstr("whole number"));
  EXPECT_THAT(message("port_flap", {{"count", "-1"}}), HasSubstr("out of range"));
  EXPECT_THAT(message("port_flap", {{"period", "0s"}}), HasSubstr("out of range"));
  EXPECT_THAT(message("port_flap", {{"duty", "100%"}}), HasSubstr("1% to 99%"));
  EXPECT_THAT(message("port_flap", {{"duty", "nan%"}}), HasSubstr("out of range"));
}

TEST(FaultKindTest, DescriptionNamesEveryParameterAndFitsTheTerminal) {
  for (const FaultKind& fault : faultKinds()) {
    const std::string page = describeFault(fault, "");
    for (const ParameterSpec& spec : fault.parameters) {
      EXPECT_THAT(page, HasSubstr(std::string(spec.name)));
    }
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

}  // namespace
}  // namespace faultline::injector
