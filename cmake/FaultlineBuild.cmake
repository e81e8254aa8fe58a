# How a room becomes a library and a test file becomes a test. One way for all of them. Which flags
# they get: FaultlineFlags.cmake.
include(FaultlineFlags)

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
    faultline_room_flags(options ${ROOM_NAME})
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
  faultline_flags(options ${S_CALM})
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
  faultline_test_flags(options ${T_LABEL} ${T_NAME})
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
