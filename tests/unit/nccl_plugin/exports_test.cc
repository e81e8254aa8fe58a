#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/sanitizers.h"

// What the plugin shows to the program that it is loaded into: NCCL's symbols and nothing else, and
// no library that might be there in another version.

namespace faultline::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::string outputOf(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> buffer;
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    text.append(buffer.data(), got);
  }
  return text;
}

TEST(NcclExportsTest, OnlyWhatNcclLooksUpIsExported) {
  std::istringstream lines(outputOf("nm -D --defined-only " FAULTLINE_NET_PLUGIN));
  std::vector<std::string> symbols;
  for (std::string line; std::getline(lines, line);) {
    symbols.push_back(line.substr(line.rfind(' ') + 1));
  }
  EXPECT_THAT(symbols,
              UnorderedElementsAre("ncclNetPlugin_v10", "ncclNetPlugin_v11", "ncclNetPlugin_v12"));
}

TEST(NcclExportsTest, NcclFindsItByItsName) {
  const std::string file = FAULTLINE_NET_PLUGIN;  // NCCL_NET_PLUGIN=faultline
  EXPECT_EQ(file.substr(file.rfind('/') + 1), "libnccl-net-faultline.so");
}

TEST(NcclExportsTest, ItsCodeStaysWhenNcclUnloadsIt) {
  EXPECT_THAT(outputOf("readelf -d " FAULTLINE_NET_PLUGIN), HasSubstr("NODELETE"));
}

TEST(NcclExportsTest, NoLibraryIsNeededThatAPythonMayHaveInAnotherVersion) {
  const std::string needed = outputOf("readelf -d " FAULTLINE_NET_PLUGIN " | grep NEEDED");
  EXPECT_THAT(needed, HasSubstr("libc.so"));
  for (const char* library : {"fmt", "spdlog", "yaml", "ssl", "crypto", "hwloc"}) {
    EXPECT_THAT(needed, Not(HasSubstr(library)));
  }
#if !defined(FAULTLINE_ADDRESS_SANITIZER) && !defined(FAULTLINE_THREAD_SANITIZER) && \
    !defined(__clang__)
  EXPECT_THAT(needed, Not(HasSubstr("stdc++")));
#endif
}

}  // namespace
}  // namespace faultline::test
