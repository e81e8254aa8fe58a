# Which flags a file gets. All that decides them is on this page, and in CMakePresets.json what a build is
# (-O, -g, the compiler, the sanitizers, whether sources are joined). On top of those of the preset:
#
#   what                                           release     under sanitizers
#   all of ours                                    warnings, assertions of the standard library, and
#                                                  -fsanitize=... (target faultline_options)
#   busy rooms: move data, or play many seeds      -           -
#   calm rooms: set up, judge, draw, wait          -O1         -O0
#                                                  (faultline_room_flags says which are busy)
#   what only tests use (faultline_support)        as rooms, as its caller says (CALM)
#   property and fuzz tests, which play seeds      -           -fno-sanitize=undefined
#   all other tests, which run once                -O0 -g0     -O0 -fno-sanitize=undefined
#                                                  (those of the channel play hours: optimized there)
#
# Rooms and what tests use get -fno-semantic-interposition and -fPIC, too. A file or shared library with
# flags of its own (kernels of reductions, what makes data, the verbs shim, the NCCL plugin, benchmarks)
# has them, with the reason, in the CMakeLists.txt beside it.
#
# Joined sources and precompiled headers are CMake's own (CMAKE_UNITY_BUILD, target_precompile_headers).
# Ours is only which targets share a precompiled header (REUSE_FROM): all with the same flags. To make
# one takes 8 s of processor time (GCC 12, two cores), and with it a group of joined sources takes 2 s
# less, of 5 to 18. Most targets are one or two such groups: one of its own for each, which is CMake's
# usual way, would cost more than it saves; eight for some 170 groups save about five minutes. With
# nlohmann/json a header takes 1 s more to load, so those that do not use it have one without it.

find_program(FAULTLINE_CCACHE ccache)
if(FAULTLINE_CCACHE)
  # Without these it keeps nothing that was compiled with precompiled headers.
  set(environment CCACHE_SLOPPINESS=pch_defines,time_macros)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # with huge pages it takes a seventh less
    list(APPEND environment GLIBC_TUNABLES=glibc.malloc.hugetlb=1)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${environment} ${FAULTLINE_CCACHE})
endif()

# Compiler settings that every target of ours shares; third-party targets do not get them.
add_library(faultline_options INTERFACE)
target_compile_features(faultline_options INTERFACE cxx_std_20)
# Assertions stay on in a release, those of the standard library (an index out of range, an empty
# optional) too: a bench that goes on with a wrong state reports something that nobody can trust.
target_compile_definitions(faultline_options INTERFACE _GLIBCXX_ASSERTIONS)
target_compile_options(faultline_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
  # GCC 12 sees uninitialised members in any std::variant of strings, GCC 13 writes behind the end of
  # any std::vector that it unrolls for one element; clang and the sanitizers watch both.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
  # GCC 13 takes a reference into a vector for one to the text that it was looked up by.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-dangling-reference>
  $<$<BOOL:${FAULTLINE_WERROR}>:-Werror>)
target_include_directories(faultline_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>)
if(FAULTLINE_SANITIZE)
  target_compile_options(faultline_options INTERFACE
    -fsanitize=${FAULTLINE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    # GCC warns of members of std::variant that it reads only in instrumented code.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(faultline_options INTERFACE -fsanitize=${FAULTLINE_SANITIZE})
  # Of its tests. Up to LLVM 16 the sanitizers take a library's thread-local variables for a block
  # of glibc before 2.25 where malloc puts them 16 bytes into a page, as it does by chance, and scan
  # or reset what that block's header would name: "Tracer caught signal 11" at the end of a test of
  # a library that is loaded. They find what such variables hold without looking at each call, too.
  set(faultline_sanitizer_environment intercept_tls_get_addr=0)
  if(FAULTLINE_SANITIZE STREQUAL "thread")
    string(PREPEND faultline_sanitizer_environment
      "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/thread_sanitizer.supp:")
  else()
    string(PREPEND faultline_sanitizer_environment "ASAN_OPTIONS=quarantine_size_mb=16:")
  endif()
endif()

if(FAULTLINE_FUZZ)  # coverage for libFuzzer, whose main comes only with the drivers
  target_compile_options(faultline_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(faultline_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# faultline_flags(<var> <calm>): of a library. In a release the more expensive half of the optimizer was
# a fifth of the time of compiling what is calm; and sanitizers, which are there for one run, make
# building twice as long with the optimizer.
function(faultline_flags result calm)
  set(options "")
  if(calm AND FAULTLINE_SANITIZE)
    set(options -O0)
  elseif(calm AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    set(options -O1)
  endif()
  # They may become part of a shared library of ours, in which nobody replaces a function.
  list(APPEND options -fno-semantic-interposition)
  set(${result} "${options}" PARENT_SCOPE)
endfunction()

# faultline_room_flags(<var> <room>)
function(faultline_room_flags result room)
  set(busy "base|ccl_.*|injector_verbs|harness_(stats|workload|workload_.*_job|inference|nccl_bench)")
  if(FAULTLINE_SANITIZE)
    set(busy "base|ccl_(channel|comm|fabric|plan|reduction|schedule|schedule_msccl)|harness_stats")
  endif()
  set(calm ON)
  if(room MATCHES "^(${busy})$")
    set(calm OFF)
  endif()
  faultline_flags(options ${calm})
  set(${result} "${options}" PARENT_SCOPE)
endfunction()

# faultline_test_flags(<var> <label> <name>)
function(faultline_test_flags result label name)
  # Half of the time of compiling a test was the optimizer's, for code that runs once. Those that
  # measure, or play thousands of seeds, stay as fast as what they test; and under sanitizers those
  # of the channel, which play hours of simulated time.
  # Nor are there line numbers outside of sanitizers, which name lines.
  set(options "")
  if(label MATCHES "^(unit|cli|netns|rdma)$" AND
      NOT (FAULTLINE_SANITIZE AND name STREQUAL "channel"))
    set(options -O0)
    if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND NOT FAULTLINE_SANITIZE)
      list(APPEND options -g0)
    endif()
  endif()
  # Undefined behaviour is looked for in what is tested, and memory errors in the tests, too: checks
  # of the templates that tests are made of were a third of the time of building them.
  if(FAULTLINE_SANITIZE MATCHES "undefined")
    list(APPEND options -fno-sanitize=undefined)
  endif()
  set(${result} "${options}" PARENT_SCOPE)
endfunction()

set(faultline_usual_headers <fmt/format.h> <algorithm> <array> <atomic> <chrono> <cmath> <cstdint>
  <cstring> <deque> <filesystem> <fstream> <functional> <map> <memory> <mutex> <numeric> <optional>
  <ranges> <set> <span> <string> <string_view> <thread> <utility> <variant> <vector>)

# faultline_reaches(<var> <library> <target or library>...): whether one of them is that library, or is
# linked with it, as far as is known where it is called.
function(faultline_reaches result library)
  set(${result} OFF PARENT_SCOPE)
  set(open ${ARGN})
  set(seen "")
  while(open)
    list(POP_FRONT open next)
    if(next STREQUAL library)
      set(${result} ON PARENT_SCOPE)
      return()
    endif()
    if(NOT TARGET "${next}" OR next IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${next})
    get_target_property(links ${next} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND open ${links})
    endif()
  endwhile()
endfunction()

# faultline_precompiled(TARGET target HEADERS <header>... [OPTIONS option...] [DEPS lib...]): what most
# files include is read once for all targets with the same options. What is linked with nlohmann/json
# (DEPS) has its header among them. The preset `debug` does without, so that an include that is missing
# is seen.
function(faultline_precompiled)
  cmake_parse_arguments(P "" "TARGET" "HEADERS;OPTIONS;DEPS" ${ARGN})
  set(libraries fmt::fmt spdlog::spdlog Threads::Threads)
  faultline_reaches(json nlohmann_json::nlohmann_json ${P_DEPS})
  if(json)
    list(APPEND P_HEADERS <nlohmann/json.hpp>)
    list(APPEND libraries nlohmann_json::nlohmann_json)
  endif()
  if("<gtest/gtest.h>" IN_LIST P_HEADERS)
    list(APPEND libraries GTest::gmock)
  endif()
  string(MD5 key "${P_HEADERS};${P_OPTIONS}")
  set(headers precompiled_${key})
  if(NOT TARGET ${headers})
    set(source ${PROJECT_BINARY_DIR}/generated/${headers}.cc)
    file(WRITE ${source} "")
    add_library(${headers} OBJECT ${source})
    target_link_libraries(${headers} PRIVATE faultline_options ${libraries})
    target_compile_options(${headers} PRIVATE ${P_OPTIONS})
    get_target_property(independent ${P_TARGET} POSITION_INDEPENDENT_CODE)
    if(independent)
      set_target_properties(${headers} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
    target_precompile_headers(${headers} PRIVATE ${P_HEADERS})
  endif()
  target_precompile_headers(${P_TARGET} REUSE_FROM ${headers})
endfunction()

# Test programs are linked in a third of the time by lld; what is delivered, by the usual linker.
find_program(FAULTLINE_LLD ld.lld)
