#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

// All that `apt install libnl-3-200` and a libc bring: of anything else a Python may have another
// version.
TEST(NcclExportsTest, NothingIsNeededButLibcAndLibnl) {
  std::vector<std::string> allowed{"libnl-3.so.", "libc.so.", "libm.so.", "ld-linux-"};
#if defined(FAULTLINE_ADDRESS_SANITIZER) || defined(FAULTLINE_THREAD_SANITIZER) || \
    defined(__clang__)
  for (const char* more : {"libstdc++.so.", "libgcc_s.so.", "libasan.so.", "libubsan.so.",
                           "libtsan.so.", "libclang_rt."}) {
    allowed.emplace_back(more);
  }
#endif
  std::istringstream lines(outputOf("readelf -d " FAULTLINE_NET_PLUGIN " | grep NEEDED"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const std::string library = line.substr(line.find('[') + 1);
    EXPECT_TRUE(std::ranges::any_of(allowed, [&](const auto& its) {
      return library.starts_with(its);
    })) << line;
  }
  EXPECT_GE(count, 2) << "libc and libnl at least";
}

}  // namespace
}  // namespace faultline::test
