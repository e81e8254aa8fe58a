#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/reader.h"
#include "harness/site/kinds/kinds.h"
#include "injector/faults/registry.h"
#include "tests/support/source_literals.h"

// Kinds of clusters are told by the properties in their rows.

namespace faultline::site {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> namesOf(int nodes) {
  std::vector<std::string> names;
  for (int node = 0; node < nodes; ++node) names.push_back("h" + std::to_string(node));
  return names;
}

TEST(SiteKinds, AreFoundByNameAndHaveAllThatIsAskedOfARow) {
  ASSERT_FALSE(kinds().empty());
  for (const Kind* const kind : kinds()) {
    EXPECT_EQ(findKind(kind->name), kind);
    EXPECT_FALSE(kind->summary.empty()) << kind->name;
    // Those that are there already are not made here: they may be more, with as many ranks in all.
    EXPECT_LE(kind->most.nodes, kind->findsRails ? kMost.nodes * kMost.ranksPerNode : kMost.nodes)
        << kind->name;
    EXPECT_LE(kind->most.ranksPerNode, kMost.ranksPerNode) << kind->name;
    EXPECT_LE(kind->most.rails, kMost.rails) << kind->name;
    EXPECT_GE(kind->most.nodes, 1) << kind->name;
    ClusterSpec spec;
    const auto size = [&](int nodes) {
      spec.nodes = nodes;
      if (kind->nodes != nullptr) spec.settings["hosts"] = namesOf(nodes);
    };
    size(2);
    spec.rails = 3;
    const auto cluster = kind->make(spec);
    ASSERT_TRUE(cluster.ok()) << kind->name << ": " << cluster.status().message();
    if (kind->nodes != nullptr) {
      EXPECT_EQ(kind->nodes(spec), 2);
    }
    if (kind->findsRails) {
      EXPECT_TRUE((*cluster)->network().empty()) << "known when it is built";
    } else {
      EXPECT_EQ((*cluster)->nodes(), 2) << "known before it is built";
      EXPECT_EQ((*cluster)->rails(), 3) << "known before it is built";
    }
    size(kind->most.nodes + 1);
    EXPECT_EQ(kind->make(spec).status().code(), Code::kInvalidArgument) << kind->name;
    const Footprint taken = kind->footprint(spec);
    EXPECT_GT(taken.memory, kController.memory) << kind->name;
    EXPECT_GE(taken.processes, 1) << kind->name;
  }
  EXPECT_EQ(findKind("nowhere"), nullptr);
}

TEST(SiteKinds, AFolderOfASiteIsInTheList) {
  int folders = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(FAULTLINE_SOURCE_DIR) / "harness/site")) {
    if (!fs::exists(entry.path() / "kind.cc")) continue;
    ++folders;
    EXPECT_NE(findKind(entry.path().filename().string()), nullptr) << entry.path();
  }
  EXPECT_EQ(folders, std::ssize(kinds()));
}

TEST(SiteKinds, AreFoundByWhatFollowsFromThem) {
  EXPECT_TRUE(firstKind(&Kind::runsRanks).runsRanks);
  EXPECT_TRUE(firstKind(&Kind::rdmaDevices).rdmaDevices);
  EXPECT_EQ(clusterOf(firstKind(&Kind::rdmaDevices)),
            fmt::format("cluster: {{kind: {}}}", firstKind(&Kind::rdmaDevices).name));
  int elsewhere = 0;
  for (const injector::FaultKind& fault : injector::faultKinds()) {
    const Kind* const kind = firstKindWith(fault);
    ASSERT_NE(kind, nullptr) << fault.name;
    EXPECT_NE(kind->refusal(fault, {}).key, kRefusedKind) << fault.name;
    if (kind != kinds().front()) ++elsewhere;
    if (injector::isOfRdmaDevices(fault.name)) {
      EXPECT_TRUE(kind->rdmaDevices) << fault.name;
    }
  }
  EXPECT_GT(elsewhere, 0);
}

TEST(SiteKinds, SayWhatTheyNeedOfTheMachineEachInItsOwnGroups) {
  std::set<std::string> seen;
  for (const Kind* const kind : kinds()) {
    const std::vector<MachineCheck> checks = kind->checkMachine();
    ASSERT_FALSE(checks.empty()) << kind->name;
    std::set<std::string> groups;
    for (const MachineCheck& check : checks) {
      groups.insert(check.group);
      EXPECT_FALSE(check.name.empty() || check.neededFor.empty()) << kind->name;
      EXPECT_TRUE(check.ok || !(check.cost.empty() || check.remedy.empty())) << check.name;
      EXPECT_TRUE(!check.required || kind == kinds().front())
          << "the quick start is of the first kind: " << check.name;
    }
    for (const std::string& group : groups) EXPECT_TRUE(seen.insert(group).second) << group;
  }
}

TEST(SiteKinds, ARefusalNamesTheKeyAndWhatToDo) {
  int possible = 0;
  for (const Kind* const kind : kinds()) {
    for (const injector::FaultKind& fault : injector::faultKinds()) {
      const auto usual = injector::FaultParameters::parse(fault, {});
      if (!usual.ok()) continue;  // a parameter has no usual value
      const Refusal refusal = kind->refusal(fault, *usual);
      EXPECT_EQ(refusal.key.empty(), refusal.reason.empty()) << kind->name << ", " << fault.name;
      if (refusal.key.empty()) ++possible;
    }
  }
  EXPECT_GT(possible, 0);
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

/// Where a file of the project belongs; "harness/site/netns/".
std::string folderOf(const Kind& kind) { return fmt::format("harness/site/{}/", kind.name); }

/// What of the code only a site itself may say: a name of its namespace, a header of its folder.
std::string knowledgeOf(const std::string& code, const Kind& kind) {
  const std::string scope = fmt::format("{}::", kind.name);
  for (std::size_t at = code.find(scope); at != std::string::npos; at = code.find(scope, at + 1)) {
    if (at == 0 || !test::isWordCharacter(code[at - 1])) return scope;
  }
  const std::string header = fmt::format("site/{}/", kind.name);
  return code.find(header) == std::string::npos ? "" : header;
}

/// An address that a site has chosen: "10.1...
bool hasAddress(const std::string& code) {
  const std::string_view begin = "\"10.";
  for (std::size_t at = code.find(begin); at != std::string::npos; at = code.find(begin, at + 1)) {
    const char next = at + begin.size() < code.size() ? code[at + begin.size()] : '\0';
    if (next >= '0' && next <= '9') return true;
  }
  return false;
}

// No file outside of a site's folder knows its classes, or an address of its own making.
TEST(SiteKinds, NobodyOutsideOfASiteKnowsIt) {
  const fs::path root = FAULTLINE_SOURCE_DIR;
  for (const Kind* const kind : kinds()) {
    ASSERT_TRUE(fs::exists(root / folderOf(*kind) / "kind.cc")) << "a folder is called as its kind";
  }
  // The verb `faultline lab` is a laboratory's own front; main starts its processes; the list.
  const std::set<std::string> fronts{"harness/cli/lab_command.cc", "harness/cli/main.cc",
                                     "harness/site/kinds/kinds.cc"};
  int looked = 0;
  for (const char* const top : {"base", "wire", "injector", "harness", "reports"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      const std::string name = fs::relative(entry.path(), root).string();
      if (fronts.contains(name)) continue;
      ++looked;
      const std::string code = codeOf(entry.path());
      bool isOfSite = false;
      for (const Kind* const kind : kinds()) {
        if (name.starts_with(folderOf(*kind))) {
          isOfSite = true;
        } else {
          EXPECT_EQ(knowledgeOf(code, *kind), "") << name;
        }
      }
      EXPECT_TRUE(isOfSite || !hasAddress(code)) << name;
    }
  }
  EXPECT_GT(looked, 100);
}

/// Whether a text means the kind of that name. One that is a word of its own is meant only where
/// it stands behind `kind`.
bool names(std::string_view text, std::string_view kind) {
  static const std::set<std::string_view> kWords{"hosts"};
  if (!kWords.contains(kind)) return test::hasWord(text, kind);
  return test::hasWord(text, fmt::format("kind: {}", kind)) ||
         test::hasWord(text, fmt::format("kind {}", kind));
}

// A text that needs the name of a kind has it from the list of kinds.
TEST(SiteKinds, NoTextOutsideOfASiteNamesIt) {
  std::size_t literals = 0;
  for (const char* const top :
       {"base", "wire", "injector", "harness", "reports", "resilient_ccl"}) {
    for (const test::SourceLiteral& literal : test::sourceLiterals(top)) {
      ++literals;
      for (const Kind* const kind : kinds()) {
        if (literal.file.starts_with(folderOf(*kind))) continue;
        EXPECT_FALSE(names(literal.text, kind->name))
            << literal.file << ":" << literal.line << ": " << literal.text;
      }
    }
  }
  EXPECT_GT(literals, 5000u);
}

}  // namespace
}  // namespace faultline::site
