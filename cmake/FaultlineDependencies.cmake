# Libraries we stand on. Required ones stop the configuration with the package to install
# (ci/setup.sh installs all of them); optional ones are listed by `faultline doctor`.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
pkg_check_modules(libnl REQUIRED IMPORTED_TARGET libnl-3.0 libnl-route-3.0)

# Optional: without its headers the verbs shim is not built. Nothing links to the library.
pkg_check_modules(libibverbs libibverbs)

# Optional: without it rdma_silent_drop refuses mlx5 adapters. Nothing links to its library either.
find_path(FAULTLINE_MLX5_HEADERS infiniband/mlx5dv.h HINTS ${libibverbs_INCLUDE_DIRS})

# Optional: without it backups are chosen by number and not by where the NICs sit.
pkg_check_modules(hwloc IMPORTED_TARGET hwloc>=2.0)

# Optional: without it there is no junit.xml.
pkg_check_modules(tinyxml2 IMPORTED_TARGET tinyxml2)

# Optional: without it users' regular expressions are matched in processes that are killed when they
# take too long.
option(FAULTLINE_RE2 "Match users' regular expressions with RE2 where it is found" ON)
if(FAULTLINE_RE2)
  pkg_check_modules(re2 IMPORTED_TARGET re2)
  if(re2_FOUND)  # its -pthread would keep the room from sharing a precompiled header
    set_target_properties(PkgConfig::re2 PROPERTIES INTERFACE_COMPILE_OPTIONS "")
  endif()
endif()

# Optional: without it no history of results is kept.
pkg_check_modules(sqlite3 IMPORTED_TARGET sqlite3)

# Optional: without both there is no nccl_bench. NCCL_ROOT says where NCCL is, if not in a usual
# place or beside CUDA.
option(FAULTLINE_NCCL "Build nccl_bench where CUDA and NCCL are found" ON)
set(FAULTLINE_NCCL_FOUND OFF)
if(FAULTLINE_NCCL)
  find_package(CUDAToolkit QUIET)
  find_path(FAULTLINE_NCCL_HEADERS nccl.h HINTS ${NCCL_ROOT} $ENV{NCCL_ROOT}
    ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  find_library(FAULTLINE_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${NCCL_ROOT} $ENV{NCCL_ROOT}
    ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
  if(CUDAToolkit_FOUND AND FAULTLINE_NCCL_HEADERS AND FAULTLINE_NCCL_LIBRARY)
    set(FAULTLINE_NCCL_FOUND ON)
    add_library(FaultlineNccl::nccl INTERFACE IMPORTED)
    target_include_directories(FaultlineNccl::nccl SYSTEM INTERFACE ${FAULTLINE_NCCL_HEADERS})
    target_link_libraries(FaultlineNccl::nccl INTERFACE ${FAULTLINE_NCCL_LIBRARY} CUDA::cudart)
  else()
    message(STATUS "CUDA or NCCL is missing: nccl_bench is not built")
  endif()
endif()

if(FAULTLINE_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark)
  include(GoogleTest)
endif()

# yaml-cpp 0.7 (Debian 12) exports the target yaml-cpp, 0.8 (Ubuntu 24.04) yaml-cpp::yaml-cpp.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
