#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/run_program.h"

namespace faultline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::Ran;
using testing::runFaultline;
using testing::runProgram;
using testing::TemporaryFolder;
using Json = nlohmann::json;

constexpr std::size_t kColumns = 100;
const std::string kProgram = std::string(FAULTLINE_BINARY_DIR) + "/faultline";

/// $PATH of this process for as long as the object lives.
class ScopedPath {
 public:
  explicit ScopedPath(const std::string& path) : before_(std::getenv("PATH")) {
    ::setenv("PATH", path.c_str(), 1);
  }
  ~ScopedPath() { ::setenv("PATH", before_.c_str(), 1); }
  ScopedPath(const ScopedPath&) = delete;
  ScopedPath& operator=(const ScopedPath&) = delete;

 private:
  std::string before_;
};

Json row(const Json& report, const std::string& name) {
  for (const Json& check : report["checks"]) {
    if (check["name"] == name) return check;
  }
  return nullptr;
}

/// With enough descriptors for the program and too few for the namespaces of the trial.
Ran runCrippled(const std::string& more = "") {
  const std::string script = "exec 3<&- 4<&- 5<&- 6<&- 7<&-; ulimit -n 8; exec '";
  return runProgram("/bin/sh", {"-c", script + kProgram + "' doctor" + more});
}

std::set<std::string> networkInterfaces() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net")) {
    names.insert(entry.path().filename());
  }
  return names;
}

TEST(DoctorTest, TheColumnOfNamesIsAsWideAsTheLongest) {
  std::size_t longest = 0;
  const Json report = Json::parse(runFaultline({"doctor", "--json"}).out);
  for (const Json& check : report["checks"]) {
    longest = std::max(longest, check["name"].get<std::string>().size());
  }
  const std::size_t text = std::string("  missing  ").size() + longest + 1;
  std::istringstream lines(runFaultline({"doctor"}).out);
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ok ") && !line.starts_with("  missing ")) continue;
    ++rows;
    if (line.size() <= text) continue;  // a long path, in the next line
    EXPECT_EQ(line[text - 1], ' ') << line;
    EXPECT_NE(line[text], ' ') << line;
  }
  EXPECT_GT(rows, 10);
}

TEST(DoctorTest, SaysWhatIsThereAndWhatWhatIsMissingCosts) {
  const auto interfaces = networkInterfaces();
  const Ran ran = runFaultline({"doctor", "--json"});
  EXPECT_EQ(ran.err, "");
  const Json report = Json::parse(ran.out);
  EXPECT_EQ(ran.exit, report["quickstart"] == true ? 0 : 3);
  for (const char* name : {"privileges",
                           "network namespace",
                           "veth",
                           "bridge",
                           "htb and u32",
                           "interface counters",
                           "bridge port state",
                           "user namespaces",
                           "cores",
                           "memory",
                           "processors awake",
                           "build for measuring",
                           "RDMA devices",
                           "GPUs",
                           "NCCL",
                           "NCCL plugin",
                           "nccl_bench",
                           "ssh",
                           "srun",
                           "mpirun"}) {
    ASSERT_TRUE(row(report, name).is_object()) << name;
  }
  // What works today, and not only what is planned.
  const std::string rdma = row(report, "RDMA devices")["needed_for"];
  EXPECT_THAT(rdma, HasSubstr("inject rdma_* by hand, faults of queue pairs"));
  for (const char* name : {"GPUs", "NCCL", "nccl_bench"}) {
    const std::string needed = row(report, name)["needed_for"];
    EXPECT_THAT(needed, HasSubstr("scenarios/gpu")) << name;
  }
  for (const auto& [name, file] :
       {std::pair{"NCCL plugin", "resilient_ccl/nccl/libnccl-net-faultline.so"},
        std::pair{"nccl_bench", "nccl_bench"}}) {
    const std::filesystem::path built = std::filesystem::path(FAULTLINE_BINARY_DIR) / file;
    EXPECT_EQ(row(report, name)["ok"], std::filesystem::exists(built)) << name;
  }
  bool all_required = true;
  for (const Json& check : report["checks"]) {
    EXPECT_NE(check["needed_for"], "") << check;
    if (check["required"] == true) all_required = all_required && check["ok"] == true;
    if (check["ok"] == true) {
      EXPECT_TRUE(check["cost"].is_null()) << check;
      continue;
    }
    for (const char* key : {"found", "cost", "remedy"}) EXPECT_NE(check[key], "") << check;
  }
  EXPECT_EQ(report["quickstart"], all_required);
  EXPECT_EQ(networkInterfaces(), interfaces) << "left something behind";
}

TEST(DoctorTest, TextFitsTheTerminalAndSaysTheSame) {
  const Ran ran = runFaultline({"doctor"});
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, Not(HasSubstr("\033")));
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kColumns) << line;
  EXPECT_THAT(ran.out, HasSubstr(ran.exit == 0 ? "The quick start can run here"
                                               : "The quick start cannot run here"));
}

TEST(DoctorTest, AMachineThatCannotRunTheQuickstartExitsWith3) {
  const Ran json = runCrippled(" --json");
  EXPECT_EQ(json.exit, 3) << json.out << json.err;
  const Json report = Json::parse(json.out);
  EXPECT_EQ(report["quickstart"], false);
  EXPECT_TRUE(std::any_of(report["checks"].begin(), report["checks"].end(), [](const Json& check) {
    return check["required"] == true && check["ok"] == false && check["cost"] != "";
  }));
  const Ran text = runCrippled();
  EXPECT_EQ(text.exit, 3);
  EXPECT_THAT(text.out, HasSubstr("  missing  "));
  EXPECT_THAT(text.out, HasSubstr("without it  clusters of kind netns"));
  EXPECT_THAT(text.out, HasSubstr("The quick start cannot run here"));
}

TEST(DoctorTest, ProgramsAreLookedForOnThePath) {
  const TemporaryFolder folder;
  std::filesystem::permissions(folder.write("mpirun", "#!/bin/sh\n"),
                               std::filesystem::perms::owner_all);
  folder.write("srun", "cannot be executed");
  const ScopedPath path("/nowhere:" + folder.path().string());
  const Json report = Json::parse(runFaultline({"doctor", "--json"}).out);
  EXPECT_EQ(row(report, "mpirun")["ok"], true);
  EXPECT_EQ(row(report, "mpirun")["found"], (folder.path() / "mpirun").string());
  EXPECT_EQ(row(report, "srun")["ok"], false);
  EXPECT_THAT(row(report, "srun")["found"].get<std::string>(),
              HasSubstr("it is no program that can be executed"));
}

}  // namespace
}  // namespace faultline
