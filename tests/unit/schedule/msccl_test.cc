#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/input_file.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/msccl/exporter.h"
#include "resilient_ccl/schedule/msccl/importer.h"
#include "resilient_ccl/schedule/msccl/xml.h"
#include "resilient_ccl/schedule/verifier.h"

namespace faultline::schedule::msccl {
namespace {

using ::testing::HasSubstr;

std::string sample(const std::string& name) {
  std::ifstream file(FAULTLINE_SOURCE_DIR "/tests/data/fuzz/msccl/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// What is wrong with a file: when read, imported, or verified; "" for nothing.
std::string mistake(const std::string& xml, std::int64_t elements = 120) {
  const auto algo = fromXml(xml);
  if (!algo.ok()) return std::string(algo.status().message());
  const auto schedule = importSchedule(*algo, elements);
  if (!schedule.ok()) return std::string(schedule.status().message());
  const auto report = verifySchedule(**schedule);
  return report->ok() ? "" : report->problems.front().text;
}

std::string whyNot(std::string_view algorithm, const ScheduleRequest& request) {
  const auto algo = exportSchedule(**makeSchedule(algorithm, request));
  EXPECT_FALSE(algo.ok());
  return std::string(algo.status().message());
}

TEST(MscclImportTest, AnAlgorithmOfOthersIsRight) {
  // As msccl-tools writes a ring: one thread block for both directions, fused steps, no orders.
  EXPECT_EQ(mistake(sample("fused_ring.xml")), "");
  EXPECT_EQ(mistake(sample("fused_ring.xml"), 7), "");  // chunks of unequal size
}

TEST(MscclImportTest, AMissingWaitIsARace) {
  // Two thread blocks of rank 0 add to the same chunk.
  const std::string wait = "depid=\"0\" deps=\"0\" hasdep=\"1\" order=\"1\"";
  const std::string none = "depid=\"-1\" deps=\"-1\" hasdep=\"1\" order=\"1\"";
  EXPECT_EQ(mistake(sample("tree.xml")), "");
  EXPECT_THAT(mistake(replaced(sample("tree.xml"), wait, none)), HasSubstr("nothing orders them"));
}

TEST(MscclImportTest, AWrongAlgorithmIsNotRight) {
  const std::string reduction = "type=\"rrs\" srcbuf=\"i\" srcoff=";
  EXPECT_THAT(mistake(replaced(sample("fused_ring.xml"), reduction + "\"3\"", reduction + "\"0\"")),
              HasSubstr("elements of other places"));
}

TEST(MscclImportTest, WhatSchedulesDoNotHaveIsSaid) {
  const std::string ring = sample("fused_ring.xml");
  EXPECT_THAT(mistake(replaced(ring, "s_chunks=\"0\"", "s_chunks=\"2\"")), HasSubstr("scratch"));
  EXPECT_THAT(mistake(replaced(ring, "inplace=\"1\"", "inplace=\"0\"")),
              HasSubstr("only out of place"));
  EXPECT_THAT(mistake(replaced(ring, "type=\"rrcs\"", "type=\"re\"")), HasSubstr("line 7: <step>"));
  // A sum of two places into a third.
  EXPECT_THAT(mistake(replaced(ring, "type=\"rrcs\" srcbuf=\"i\" srcoff=\"1\"",
                               "type=\"rrcs\" srcbuf=\"i\" srcoff=\"2\"")),
              HasSubstr("into another place"));
  EXPECT_THAT(mistake(replaced(ring, "allreduce", "custom")), HasSubstr("coll = 'custom'"));
}

TEST(MscclImportTest, NumbersOutOfRangeAreSaid) {
  const std::string ring = sample("fused_ring.xml");
  EXPECT_THAT(mistake(replaced(ring, "srcoff=\"0\"", "srcoff=\"4\"")),
              HasSubstr("srcoff = 4, not in 0..3"));
  EXPECT_THAT(mistake(replaced(ring, "ngpus=\"4\"", "ngpus=\"5\"")), HasSubstr("gpu id=\"4\""));
  EXPECT_THAT(mistake(replaced(ring, "send=\"1\"", "send=\"0\"")), HasSubstr("itself as a peer"));
  EXPECT_THAT(mistake(replaced(ring, "<step s=\"1\"", "<step s=\"7\"")), HasSubstr("expected 1"));
  EXPECT_THAT(mistake(replaced(ring, "depid=\"-1\" deps=\"-1\"", "depid=\"3\" deps=\"0\"")),
              HasSubstr("not there"));
  EXPECT_THAT(mistake("<algo"), HasSubstr("no XML"));
  EXPECT_THAT(mistake(""), testing::Not(testing::IsEmpty()));
}

TEST(MscclImportTest, StepsThatWaitInACircleAreSaid) {
  EXPECT_THAT(mistake(replaced(sample("fused_ring.xml"), "depid=\"-1\" deps=\"-1\"",
                               "depid=\"0\" deps=\"1\"")),
              HasSubstr("can never run"));
}

TEST(MscclImportTest, AConnectionBelongsToOneThreadBlock) {
  EXPECT_THAT(mistake(replaced(sample("tree.xml"), "id=\"1\" send=\"-1\" recv=\"2\"",
                               "id=\"1\" send=\"-1\" recv=\"1\"")),
              HasSubstr("a connection belongs to one"));
}

TEST(MscclImportTest, OrdersMustAgreeWithSteps) {
  EXPECT_THAT(mistake(replaced(sample("tree.xml"), " order=\"0\"", "")),
              HasSubstr("only some steps"));
  std::string ring = replaced(sample("ring.xml"), " order=\"0\"", " order=\"9\"");
  EXPECT_THAT(mistake(ring), HasSubstr("contradicts"));
}

std::string caseOf(const std::string& name) {
  return *readFile(FAULTLINE_SOURCE_DIR "/tests/data/msccl/" + name);
}

TEST(MscclImportTest, BothFormsOfMscclToolsSayTheSame) {
  EXPECT_EQ(mistake(caseOf("old.xml")), "");
  EXPECT_EQ(mistake(caseOf("newfmt.xml")), "");
  EXPECT_EQ(*toXml(*fromXml(caseOf("newfmt.xml"))), *toXml(*fromXml(caseOf("old.xml"))));
}

TEST(MscclImportTest, TheNewerFormLeavesOutWhatIsUsual) {
  const std::string ring = replaced(caseOf("newfmt.xml"), " nchunksperloop=\"2\"", "");
  EXPECT_EQ(mistake(ring), "");
  EXPECT_EQ(fromXml(ring)->chunks, 2);
  EXPECT_EQ(mistake(replaced(ring, "off=\"1\"",
                             "off=\"1\" cnt=\"1\" depid=\"0\" deps=\"0\" "
                             "hasdep=\"0\"")),
            "");
  EXPECT_THAT(mistake(replaced(ring, "type=\"r\"", "type=\"cpy\"")), HasSubstr("what is copied"));
  EXPECT_THAT(mistake(replaced(ring, "buf=\"o\"", "buf=\"s\"")), HasSubstr("no scratch buffer"));
  EXPECT_THAT(mistake(replaced(ring, "<op step=\"0\"", "<op step=\"3\"")),
              HasSubstr("has step = 3; expected 0"));
}

TEST(MscclImportTest, WhatIsNotKnownIsSaidWithItsLine) {
  const std::string ring = caseOf("newfmt.xml");
  EXPECT_THAT(mistake(replaced(ring, "<tb ", "<copy i_off=\"0\"/>\n<tb ")),
              HasSubstr("line 3: <gpu> has an element <copy>"));
  EXPECT_THAT(mistake(replaced(ring, "<op step=\"1\"", "<opp step=\"1\"")),
              HasSubstr("did you mean 'op'"));
  EXPECT_THAT(mistake(replaced(ring, "off=\"1\"", "offset=\"1\"")),
              HasSubstr("line 5: <op> has an attribute 'offset'"));
  EXPECT_THAT(mistake(replaced(ring, "chan=\"0\"", "chan=\"0\" rbid=\"1\"")),
              HasSubstr("line 3: <tb> has an attribute 'rbid'"));
  EXPECT_THAT(mistake(replaced(ring, "o_chunks", "chunks")), HasSubstr("'chunks'"));
  EXPECT_THAT(mistake(replaced(ring, "proto", "protocol")),
              HasSubstr("'protocol', which is not known; known are name, proto"));
  EXPECT_THAT(mistake(replaced(ring, "<tb ", "text <tb ")), HasSubstr("has text in it"));
  EXPECT_THAT(mistake(replaced(caseOf("old.xml"), "srcoff=\"0\" ", "")),
              HasSubstr("line 4: <step> needs srcoff"));
}

TEST(MscclImportTest, AFileHasOneAlgorithm) {
  const std::string ring = sample("fused_ring.xml");
  EXPECT_EQ(mistake(ring + "<!-- the end -->\n"), "");
  EXPECT_THAT(mistake(ring + ring), HasSubstr("more behind the end of <algo>"));
  EXPECT_THAT(mistake(ring + "<other/>"), HasSubstr("a file has one"));
}

TEST(MscclImportTest, DepthIsBounded) {
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "<algo>";
  EXPECT_THAT(mistake(deep), HasSubstr("no XML"));
}

TEST(MscclExportTest, AFileOfOthersWithManyLanesCanBeWrittenAgain) {
  // Without orders eight channels of eight ranks become 64 lanes.
  const auto ring = makeSchedule("ring", {.ranks = 8, .elements = 64, .segments = 8});
  Algo algo = *exportSchedule(**ring);
  ASSERT_EQ(algo.channels, 8);
  for (Gpu& gpu : algo.gpus) {
    for (ThreadBlock& block : gpu.blocks) {
      for (Step& step : block.steps) step.order = -1;
    }
  }
  const auto foreign = importSchedule(algo, 64);
  ASSERT_TRUE(foreign.ok());
  EXPECT_GT((*foreign)->lanes(), kMaxChannels);
  const auto again = exportSchedule(**foreign);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->channels, 8);
  EXPECT_EQ(mistake(*toXml(*again), 64), "");
}

TEST(MscclExportTest, EveryFileIsReadBackByTheParser) {
  int written = 0;
  for (const Algorithm& info : allAlgorithms()) {
    for (const std::int64_t elements : {24, 30, 120}) {
      ScheduleRequest request{.ranks = 4, .elements = elements};
      request.bandwidths = {1, 0.5, 1, 1};
      const auto schedule = makeSchedule(info.name, request);
      if (!schedule.ok()) continue;
      const auto algo = exportSchedule(**schedule);
      if (!algo.ok()) continue;
      ++written;
      EXPECT_TRUE(fromXml(*toXml(*algo)).ok())
          << info.name << ": " << fromXml(*toXml(*algo)).status().message();
    }
  }
  EXPECT_GT(written, 0);
}

TEST(MscclExportTest, ANameIsText) {
  Algo algo = *fromXml(caseOf("old.xml"));
  algo.name = "a\033]0;b\x07<\"";
  EXPECT_THAT(*toXml(algo), HasSubstr("a\\x1b]0;b\\x07&lt;&quot;"));
}

TEST(MscclExportTest, WhatDoesNotFitIsSaid) {
  EXPECT_THAT(whyNot("ring", {.ranks = 3, .elements = 1 << 20}), HasSubstr("units of 1 elements"));
  EXPECT_THAT(whyNot("ring", {.ranks = 2, .elements = 66, .segments = 33}), HasSubstr("33 lanes"));
  EXPECT_THAT(whyNot("optcc", {.ranks = 4, .elements = 4 * 300, .segments = 300}),
              HasSubstr("256 steps"));
  EXPECT_THAT(whyNot("optcc", {.ranks = 18, .elements = 18}), HasSubstr("thread blocks"));
  EXPECT_THAT(whyNot("optcc", {.ranks = 4, .elements = 1000, .bandwidths = {1, 0.9, 1, 1}}),
              HasSubstr("chunks of 1 elements"));
  EXPECT_THAT(whyNot("ring_send_recv", {.ranks = 4, .elements = 16}), HasSubstr("send_recv"));
  EXPECT_THAT(whyNot("ring", {.ranks = 1, .elements = 16}), HasSubstr("without operations"));
}

}  // namespace
}  // namespace faultline::schedule::msccl
