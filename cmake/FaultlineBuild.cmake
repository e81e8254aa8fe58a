# How a room becomes a library and a test file becomes a test. One way for all of them.

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
# files include is read once for all targets with the same options; reading it was a third of the time
# of compiling a room, and half of that of a test. What is linked with nlohmann/json (DEPS) has its
# header among them. The preset `debug` does without, so that an include that is missing is seen.
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

set(faultline_usual_headers <fmt/format.h> <algorithm> <array> <atomic> <chrono> <cmath> <cstdint>
  <cstring> <deque> <filesystem> <fstream> <functional> <map> <memory> <mutex> <numeric> <optional>
  <ranges> <set> <span> <string> <string_view> <thread> <utility> <variant> <vector>)

# faultline_effort(<var> <calm>): the compiler options of a library. Calm is what sets up, judges and
# draws: it waits for others or is done once. In a release the more expensive half of the optimizer was
# a fifth of the time of compiling it; and sanitizers, which are there for one run, make building twice
# as long with the optimizer. What moves data, or plays thousands of seeds, is not calm.
function(faultline_effort result calm)
  set(options "")
  if(calm AND FAULTLINE_SANITIZE)
    set(options -O0)
  elseif(calm AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    set(options -O1)
  endif()
  # They may become part of a shared library of ours, in which nobody replaces a function.
  list(APPEND options -fno-semantic-interposition)
  set(${result} ${options} PARENT_SCOPE)
endfunction()

# faultline_room(NAME name [DEPS lib...]): all *.cc of this folder become the library
# faultline_<name>. A folder is a library; arrows between rooms are its DEPS.
function(faultline_room)
  cmake_parse_arguments(ROOM "" "NAME" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(sources)
    add_library(faultline_${ROOM_NAME} STATIC ${sources})
    target_link_libraries(faultline_${ROOM_NAME} PUBLIC faultline_options ${ROOM_DEPS})
    set_target_properties(faultline_${ROOM_NAME} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    set(busy "base|ccl_.*|injector_verbs|harness_(stats|workload|inference|nccl_bench)")
    if(FAULTLINE_SANITIZE)
      set(busy "base|ccl_(channel|comm|fabric|plan|reduction|schedule|schedule_msccl)|harness_stats")
    endif()
    set(calm ON)
    if(ROOM_NAME MATCHES "^(${busy})$")
      set(calm OFF)
    endif()
    faultline_effort(options ${calm})
    target_compile_options(faultline_${ROOM_NAME} PRIVATE ${options})
    faultline_precompiled(TARGET faultline_${ROOM_NAME} HEADERS ${faultline_usual_headers}
      OPTIONS ${options} DEPS ${ROOM_DEPS})
    install(TARGETS faultline_${ROOM_NAME} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  else()
    add_library(faultline_${ROOM_NAME} INTERFACE)
    target_link_libraries(faultline_${ROOM_NAME} INTERFACE faultline_options ${ROOM_DEPS})
  endif()
  file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/faultline/${room})
endfunction()

# faultline_support(TARGET target [CALM]): a library or program that only tests use is compiled as a
# room is, with the precompiled headers of rooms; CALM: as those that set up and judge.
function(faultline_support)
  cmake_parse_arguments(S "CALM" "TARGET" "" ${ARGN})
  faultline_effort(options ${S_CALM})
  # fmt and spdlog for all, since precompiled headers want the same definitions.
  target_link_libraries(${S_TARGET} PRIVATE fmt::fmt spdlog::spdlog)
  get_target_property(type ${S_TARGET} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_compile_options(${S_TARGET} PRIVATE -fPIC)  # not -fPIE, with which rooms' headers do not go
  else()
    set_target_properties(${S_TARGET} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_compile_options(${S_TARGET} PRIVATE ${options})
  faultline_precompiled(TARGET ${S_TARGET} HEADERS ${faultline_usual_headers} OPTIONS ${options})
endfunction()

# faultline_test(LABEL unit NAME base [DEPS lib...] [TIMEOUT s] [SERIAL] [WHOLE]): all *_test.cc of the
# folder tests/<label>/<name>/ become the program <label>_<name>, and each of its cases a ctest test;
# with WHOLE all cases together are one, which is skipped when its output says "SKIPPED: reason".
function(faultline_test)
  cmake_parse_arguments(T "SERIAL;WHOLE" "LABEL;NAME;TIMEOUT" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${T_LABEL}/${T_NAME}/*.cc)
  set(program ${T_LABEL}_${T_NAME})
  add_executable(${program} ${sources})
  # fmt and spdlog for all, since precompiled headers want the same definitions.
  target_link_libraries(${program} PRIVATE faultline_options ${T_DEPS} fmt::fmt spdlog::spdlog
    GTest::gtest_main GTest::gmock)
  target_compile_definitions(${program} PRIVATE
    FAULTLINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" FAULTLINE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  # Half of the time of compiling a test was the optimizer's, for code that runs once. Those that
  # measure, or play thousands of seeds, stay as fast as what they test; and under sanitizers those
  # of the channel, which play hours of simulated time.
  # Nor are there line numbers outside of sanitizers, which name lines.
  set(options "")
  if(T_LABEL MATCHES "^(unit|cli|netns|rdma)$" AND
      NOT (FAULTLINE_SANITIZE AND T_NAME STREQUAL "channel"))
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
  target_compile_options(${program} PRIVATE ${options})
  faultline_precompiled(TARGET ${program} OPTIONS ${options}
    HEADERS <gmock/gmock.h> <gtest/gtest.h> ${faultline_usual_headers} DEPS ${T_DEPS})
  if(FAULTLINE_LLD)
    target_link_options(${program} PRIVATE -fuse-ld=lld)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 60)
  endif()
  set(properties LABELS ${T_LABEL} TIMEOUT ${T_TIMEOUT})
  if(T_SERIAL)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  if(FAULTLINE_SANITIZE)
    list(APPEND properties ENVIRONMENT "${faultline_sanitizer_environment}")
    # To start a process for each case takes longer than most cases do; a sanitizer ends at the first
    # error, and says where.
    # The longest of them in parts, so that no core is left with it alone, and the long ones first.
    set(names ${T_LABEL}.${T_NAME})
    if("${T_LABEL}.${T_NAME}" MATCHES "^unit[.](channel|comm)$")
      set(names)
      foreach(part RANGE 1 4)
        list(APPEND names ${T_LABEL}.${T_NAME}.${part}of4)
      endforeach()
    endif()
    list(LENGTH names parts)
    set(part 0)
    foreach(name IN LISTS names)
      add_test(NAME ${name} COMMAND ${program})
      set_tests_properties(${name} PROPERTIES ${properties} TIMEOUT 600)
      if(parts GREATER 1)
        set_tests_properties(${name} PROPERTIES ENVIRONMENT_MODIFICATION
          "GTEST_TOTAL_SHARDS=set:${parts};GTEST_SHARD_INDEX=set:${part}")
      endif()
      if(T_NAME MATCHES "^(channel|comm|plan)$")
        set_tests_properties(${name} PROPERTIES COST 100)
      endif()
      math(EXPR part "${part} + 1")
    endforeach()
  elseif(T_WHOLE)
    add_test(NAME ${T_LABEL}.${T_NAME} COMMAND ${program})
    set_tests_properties(${T_LABEL}.${T_NAME} PROPERTIES ${properties}
      SKIP_REGULAR_EXPRESSION "SKIPPED: ")
  else()
    gtest_discover_tests(${program} TEST_PREFIX ${T_LABEL}.${T_NAME}. DISCOVERY_TIMEOUT 60
      PROPERTIES ${properties})
  endif()
  if(T_LABEL MATCHES "^(unit|property)$")
    add_dependencies(unit_and_property ${program})
  endif()
endfunction()
