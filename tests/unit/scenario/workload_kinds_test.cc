#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/workload_kind.h"

// Workloads are told by the properties in their rows.

namespace faultline::scenario {
namespace {

namespace fs = std::filesystem;

TEST(WorkloadKinds, AreFoundByNameAndHaveAllThatIsAskedOfARow) {
  ASSERT_FALSE(workloadKinds().empty());
  EXPECT_EQ(Workload{}.kind, workloadKinds().front());
  EXPECT_EQ(findWorkloadKind("prayer"), nullptr);
  std::set<std::string_view> own;  // keys are of one kind, or of all
  for (const WorkloadKind* const kind : workloadKinds()) {
    EXPECT_EQ(findWorkloadKind(kind->name), kind);
    EXPECT_FALSE(kind->summary.empty()) << kind->name;
    EXPECT_FALSE(kind->brief.empty()) << kind->name;
    EXPECT_TRUE(hasWorkloadKey(*kind, "kind"));
    for (const std::string_view key : kind->keys) {
      const auto is = [&](const Field& field) { return field.spec.name == key; };
      EXPECT_TRUE(std::ranges::any_of(workloadTable().fields, is)) << kind->name << ": " << key;
    }
    ASSERT_NE(kind->fields, nullptr) << kind->name;
    for (const Field& field : kind->fields()) {
      EXPECT_TRUE(hasWorkloadKey(*kind, field.spec.name)) << kind->name << ": " << field.spec.name;
      EXPECT_TRUE(own.insert(field.spec.name).second) << field.spec.name << " is of two kinds";
    }
    EXPECT_EQ(kind->runsRanks, kind->whyAllRanksAreNeeded != nullptr) << kind->name;
    EXPECT_EQ(kind->runsRanks, kind->whyNoSchedule != nullptr) << kind->name;
    EXPECT_EQ(kind->runsRanks, kind->placement == nullptr) << kind->name;
    EXPECT_FALSE(kind->hasBound && !kind->whyNoBound.empty()) << kind->name;
  }
}

// What `faultline init` writes of it is read, written, and read again as the same.
TEST(WorkloadKinds, ASectionIsWrittenAsWhatIsReadAgainAsTheSame) {
  for (const WorkloadKind* const kind : workloadKinds()) {
    const std::string text =
        "version: 1\nname: it\ncluster: {nodes: 4}\nstrategies: [fault_free]\nworkload:\n  kind: " +
        std::string(kind->name) + "\n" + kind->starter({.nodes = 4, .seconds = 5});
    const ReadResult read = readScenario(text, "it");
    ASSERT_TRUE(read.ok()) << kind->name << ": " << read.mistakes.front().toString();
    EXPECT_EQ(read.scenario->workload.kind, kind);
    const ReadResult again = readScenario(toJson(*read.scenario).dump(), "again");
    ASSERT_TRUE(again.ok()) << kind->name << ": " << again.mistakes.front().toString();
    EXPECT_EQ(again.scenario->workload, read.scenario->workload) << kind->name;
    EXPECT_FALSE(kind->inWords(read.scenario->workload).empty());
    const Placement placement = placementOf(*read.scenario);
    EXPECT_EQ(placement.processes(), 4) << kind->name;
    EXPECT_EQ(placement.nodeOf(3), 3) << kind->name;
    if (kind->runsRanks && kind->whyNoSchedule(read.scenario->workload).empty()) {
      ASSERT_NE(kind->calls, nullptr) << kind->name;
      EXPECT_FALSE(kind->calls(*read.scenario).empty()) << kind->name;
    }
  }
}

/// What a file says besides comments.
std::string codeOf(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  for (std::string line; std::getline(in, line);) {
    const std::size_t comment = line.find("//");
    text << line.substr(0, comment) << "\n";
  }
  return text.str();
}

/// A row of one, its name where kinds are compared, or a list of names.
bool tellsAKind(const std::string& code, std::string& found) {
  std::string names, rows;
  for (const WorkloadKind* const kind : workloadKinds()) {
    std::string row(kind->name);
    row[0] = static_cast<char>(std::toupper(row[0]));
    names += (names.empty() ? "" : "|") + std::string(kind->name);
    rows += (rows.empty() ? "" : "|") + row;
  }
  const std::regex known(
      fmt::format(R"x(\bk(?:{1})(?:Workload|Job)\b|)x"
                  R"x(\b(?:isForeign|sweeps|serves)\(\)|[!=]=\s*"(?:{0})"|"(?:{0})"\s*[!=]=|)x"
                  R"x(findWorkloadKind\("|string_view \w+ = "(?:{0})";)x",
                  names, rows));
  std::smatch what;
  if (!std::regex_search(code, what, known)) return false;
  found = what.str();
  return true;
}

TEST(WorkloadKinds, NobodyOutsideOfItsFolderKnowsOne) {
  std::string found;
  ASSERT_TRUE(tellsAKind("if (kind == \"training\") return;", found));
  ASSERT_TRUE(tellsAKind("constexpr std::string_view kMine = \"command\";", found));
  ASSERT_TRUE(tellsAKind("kind = &kTrainingWorkload;", found));
  const fs::path root = FAULTLINE_SOURCE_DIR;
  // A strategy says for which workload it is; that is a name in a table, which is looked up.
  const std::set<std::string> tables{"harness/baseline/strategy_table.cc"};
  int looked = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root / "harness")) {
    const std::string extension = entry.path().extension();
    if (extension != ".cc" && extension != ".h") continue;
    const std::string name = fs::relative(entry.path(), root).string();
    const bool own = std::ranges::any_of(workloadKinds(), [&](const WorkloadKind* kind) {
      return name.starts_with("harness/workload/" + std::string(kind->name) + "/");
    });
    if (own || tables.contains(name)) continue;
    ++looked;
    EXPECT_FALSE(tellsAKind(codeOf(entry.path()), found)) << name << ": " << found;
  }
  EXPECT_GT(looked, 100);
}

}  // namespace
}  // namespace faultline::scenario
