// What stands behind the shim: a libibverbs that lacks what is newer, something else, or nothing.
#include <dlfcn.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "injector/verbs/shim/untyped_call.h"
#include "tests/unit/verbs_shim/own_process.h"
#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {
namespace {

using ::testing::HasSubstr;

using injector::verbs::shim::Function;
using injector::verbs::shim::Word;

/// Those that return a pointer.
const std::set<std::string> kPointers{
    "ibv_create_comp_channel", "ibv_get_sysfs_path",  "ibv_alloc_pd",        "ibv_create_ah",
    "ibv_create_ah_from_wc",   "ibv_create_srq",      "ibv_event_type_str",  "ibv_free_device_list",
    "ibv_get_device_guid",     "ibv_get_device_list", "ibv_get_device_name", "ibv_node_type_str",
    "ibv_port_state_str",      "ibv_reg_mr",          "ibv_wc_status_str",   "ibv_qp_to_qp_ex",
    "ibv_reg_mr_iova",         "ibv_reg_mr_iova2",    "ibv_import_mr",       "ibv_import_pd",
    "ibv_reg_dmabuf_mr",       "ibv_import_dm",       "ibv_open_device",     "ibv_import_device",
    "ibv_create_qp",           "ibv_create_cq",       "ibv_alloc_dmah",      "ibv_reg_mr_ex"};

/// How those say that they have failed, in errno, that return numbers other than one of errno.
const std::map<std::string, int> kFailures{
    {"ibv_read_sysfs_file", -1},       {"ibv_get_async_event", -1},
    {"ibv_get_pkey_index", -1},        {"ibv_get_device_index", -1},
    {"ibv_get_cq_event", -1},          {"_ibv_query_gid_table", -EOPNOTSUPP},
    {"ibv_query_qp_data_in_order", 0}, {"ibv_dm_export_dmabuf_fd", -1}};

/// Calls it with arguments that no library would survive.
FAULTLINE_UNTYPED_CALL void expectMissing(void* library, const std::string& name) {
  auto* const function = reinterpret_cast<Function*>(::dlsym(library, name.c_str()));
  ASSERT_NE(function, nullptr) << name;
  errno = 0;
  const Word got = function(1, 2, 3, 4, 5, 6);
  if (name == "ibv_ack_cq_events") return;  // says nothing
  const auto failure = kFailures.find(name);
  if (kPointers.contains(name)) {
    EXPECT_EQ(got, 0u) << name;
  } else if (failure != kFailures.end()) {
    EXPECT_EQ(static_cast<int>(got), failure->second) << name;
  } else {
    EXPECT_EQ(static_cast<int>(got), EOPNOTSUPP) << name;
    return;
  }
  EXPECT_EQ(errno, EOPNOTSUPP) << name;
}

TEST(RealLibraryTest, WithoutOneEveryCallFailsAndTheReasonIsSaidOnce) {
  if (!isInner()) {
    constexpr const char* kSays = "faultline-verbs: there is no libibverbs behind the shim";
    for (const auto& [library, why] : {
             std::pair{"/none/libibverbs.so.1", "cannot open shared object file"},
             std::pair{FAULTLINE_VERBS_SHIM, "is the shim itself"},
             std::pair{"libc.so.6", "libc.so.6 is no libibverbs"},
         }) {
      const std::string said = inOwnProcess(library);
      EXPECT_THAT(said, HasSubstr(kSays));
      EXPECT_THAT(said, HasSubstr(why));
      EXPECT_EQ(said.find(kSays), said.rfind(kSays)) << said;
    }
    return;
  }
  void* const shim = ::dlopen(FAULTLINE_VERBS_SHIM, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(shim, nullptr) << ::dlerror();
  std::ifstream file(FAULTLINE_SOURCE_DIR "/injector/verbs/shim/exports.map");
  const std::string exports(std::istreambuf_iterator<char>(file), {});
  const std::regex name(R"((_?ibv|mult|mbps)_[a-z_0-9]+(?=;))");
  int count = 0;
  for (std::sregex_iterator at(exports.begin(), exports.end(), name), end; at != end; ++at) {
    expectMissing(shim, at->str());
    ++count;
  }
  EXPECT_GT(count, 60) << "of those that exports.map names";
}

TEST(RealLibraryTest, WithoutAChoiceItIsTheSystems) {
  void* const systems = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!isInner()) {
    const std::string said = inOwnProcess("");
    EXPECT_EQ(said.find("libibverbs.so.1") == std::string::npos, systems != nullptr) << said;
    return;
  }
  void* const shim = ::dlopen(FAULTLINE_VERBS_SHIM, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(shim, nullptr) << ::dlerror();
  auto* const text = reinterpret_cast<Function*>(::dlsym(shim, "ibv_wc_status_str"));
  EXPECT_EQ(text(0, 0, 0, 0, 0, 0) != 0, systems != nullptr);
}

TEST_F(ShimTest, WhatIsNewerThanTheLibraryIsMissingAlone) {
  for (const char* const name :
       {"ibv_query_ece", "ibv_import_dm", "ibv_read_sysfs_file", "ibv_query_port_speed"}) {
    expectMissing(shimLibrary().handle, name);
  }
  const Device device(0);  // and the rest works
}

// Without those of IBVERBS_1.1 it uses no RDMA at all, and is quiet about the others.
TEST(RealLibraryTest, WhatNcclLooksUpIsThere) {
  const std::map<std::string, std::set<std::string>> looked_up{
      {"IBVERBS_1.1",
       {"ibv_get_device_list", "ibv_free_device_list", "ibv_get_device_name", "ibv_open_device",
        "ibv_close_device",    "ibv_get_async_event",  "ibv_ack_async_event", "ibv_query_device",
        "ibv_query_port",      "ibv_query_gid",        "ibv_query_qp",        "ibv_alloc_pd",
        "ibv_dealloc_pd",      "ibv_reg_mr",           "ibv_dereg_mr",        "ibv_create_cq",
        "ibv_destroy_cq",      "ibv_create_qp",        "ibv_modify_qp",       "ibv_destroy_qp",
        "ibv_fork_init",       "ibv_event_type_str"}},
      {"IBVERBS_1.8", {"ibv_reg_mr_iova2"}},
      {"IBVERBS_1.10", {"ibv_query_ece", "ibv_set_ece"}},
      {"IBVERBS_1.12", {"ibv_reg_dmabuf_mr"}},
      {"IBVERBS_1.16", {"ibv_query_port_speed"}}};
  for (const auto& [version, names] : looked_up) {
    for (const std::string& name : names) {
      void* const found = ::dlvsym(shimLibrary().handle, name.c_str(), version.c_str());
      EXPECT_NE(found, nullptr) << name << "@" << version;
      // dlvsym() also finds names that have no version at all.
      EXPECT_EQ(::dlvsym(shimLibrary().handle, name.c_str(), "IBVERBS_1.99"), nullptr) << name;
    }
  }
}

TEST_F(ShimTest, AllSixArgumentsArePassedOn) {
  auto* const function = reinterpret_cast<Function*>(
      ::dlvsym(shimLibrary().handle, "ibv_reg_dmabuf_mr", "IBVERBS_1.12"));
  ASSERT_NE(function, nullptr);
  const auto& got = *reinterpret_cast<const ibv_mr*>(function(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(reinterpret_cast<Word>(got.pd), 1u);
  EXPECT_EQ(reinterpret_cast<Word>(got.addr), 2u);
  EXPECT_EQ(got.length, 3u);
  EXPECT_EQ(got.handle, 4u);
  EXPECT_EQ(got.lkey, 5u);
  EXPECT_EQ(got.rkey, 6u);
}

}  // namespace
}  // namespace faultline::testing
