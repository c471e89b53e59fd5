# sluice_library(DEPS <folder>... [LINK <target>...] [SOURCES <file>...]
#                [UNITY | APART])
#
# Makes the object library of the folder it is called in, its unit tests (all
# *_test.cc, one binary `<folder>_test`), its benchmarks (a binary for each
# *_bench.cc) and its fuzz targets (a binary for each *_fuzz.cc).
# Every object library ends up in libsluice.so; tests link against that.
# `tools/check_layers` reads DEPS and holds every #include against it.

set(SLUICE_OBJECTS "" CACHE INTERNAL "")
set(SLUICE_LINKED "" CACHE INTERNAL "")

add_library(sluice_flags INTERFACE)
target_compile_options(sluice_flags INTERFACE -Wall -Wextra -Werror
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # gcc 12 warns of string literals that it believes to overlap or overrun, and
  # of every inlined vector that is moved while empty.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-restrict
    -Wno-stringop-overflow -Wno-maybe-uninitialized>)
target_include_directories(sluice_flags INTERFACE ${CMAKE_SOURCE_DIR})
# A system folder: generated code is not held to our warnings.
target_include_directories(sluice_flags SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/gen)

set(sanitizers "")
set(optimize -O1)
set(SLUICE_FUZZ OFF)
if(SLUICE_SANITIZE STREQUAL "address")
  set(sanitizers -fsanitize=address,undefined -fno-sanitize=vptr)
  # One build for the tests and for libFuzzer, which only clang has.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(SLUICE_FUZZ ON)
    list(APPEND sanitizers -fsanitize=fuzzer-no-link)
  endif()
elseif(SLUICE_SANITIZE STREQUAL "thread")
  set(sanitizers -fsanitize=thread)
elseif(SLUICE_SANITIZE STREQUAL "fuzzer")
  # No sanitizer: libFuzzer alone, for many runs. It is clang's.
  set(sanitizers -fsanitize=fuzzer-no-link)
  set(optimize -O2)
  set(SLUICE_FUZZ ON)
elseif(SLUICE_SANITIZE)
  message(FATAL_ERROR "SLUICE_SANITIZE is '${SLUICE_SANITIZE}'; it may be "
    "address, thread or fuzzer")
endif()
if(sanitizers)
  target_link_options(sluice_flags INTERFACE ${sanitizers})
  # gcc's flow warnings misfire on instrumented code.
  target_compile_options(sluice_flags INTERFACE ${sanitizers}
    -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 ${optimize} -D_GLIBCXX_ASSERTIONS
    $<$<CXX_COMPILER_ID:GNU>:-Wno-error>)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # A precompiled header is part of each compile, which ccache must be told.
  set(launch ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros
    ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launch})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launch})
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# A precompiled header fits only a target with the same flags, so the one of
# the tests is compiled as they are: for an executable, with GoogleTest's macros.
function(sluice_precompile target header)
  if(NOT TARGET ${header}_pch)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${header}_pch.cc CONTENT "")
    add_library(${header}_pch OBJECT ${CMAKE_BINARY_DIR}/${header}_pch.cc)
    target_link_libraries(${header}_pch PRIVATE sluice_flags sluice_third_party)
    if(header STREQUAL "pch_test")
      target_link_libraries(${header}_pch PRIVATE sluice_test_main)
      set_target_properties(${header}_pch PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${header}_pch PRIVATE -fPIE)
    endif()
    target_precompile_headers(${header}_pch PRIVATE
      ${CMAKE_SOURCE_DIR}/cmake/${header}.h)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${header}_pch)
endfunction()

# How many sources are compiled at once, in the folders that say UNITY and in
# tests. clang-tidy takes longer for the headers of a source than for the source,
# so it gets large batches of every folder but those that say APART, whose
# sources have names in common.
set(SLUICE_BATCH 6)
if(CMAKE_CXX_CLANG_TIDY)
  set(SLUICE_BATCH 16)
endif()

add_custom_target(sluice_fuzzers)

function(sluice_library)
  cmake_parse_arguments(ARG "UNITY;APART" "" "DEPS;LINK;SOURCES" ${ARGN})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$|/testing/")
  list(APPEND sources ${ARG_SOURCES})
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$|/testing/")
  set(benches ${all})
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  set(fuzzers ${all})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")

  if(sources)
    add_library(sluice_${folder} OBJECT ${sources})
    target_link_libraries(sluice_${folder} PRIVATE sluice_flags sluice_third_party ${ARG_LINK})
    # gRPC's targets bring -pthread along, with which the header was not made.
    if(NOT "${ARG_LINK}" MATCHES "gRPC")
      sluice_precompile(sluice_${folder} pch)
    endif()
    foreach(generated sluice_proto_gen sluice_client_gen)
      if(TARGET ${generated})
        add_dependencies(sluice_${folder} ${generated})
      endif()
    endforeach()
    if(ARG_SOURCES)  # generated, so nothing to lint
      set_target_properties(sluice_${folder} PROPERTIES CXX_CLANG_TIDY "")
    endif()
    if(ARG_UNITY OR (CMAKE_CXX_CLANG_TIDY AND NOT ARG_APART))
      set_target_properties(sluice_${folder} PROPERTIES
        UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${SLUICE_BATCH})
      # gcc takes a source that another includes for a header, whose classes
      # must not use anonymous ones.
      target_compile_options(sluice_${folder} PRIVATE
        $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    endif()
    set(SLUICE_OBJECTS ${SLUICE_OBJECTS} sluice_${folder} CACHE INTERNAL "")
    set(SLUICE_LINKED ${SLUICE_LINKED} ${ARG_LINK} CACHE INTERNAL "")
  endif()
  if(tests)
    add_executable(${folder}_test ${tests})
    target_link_libraries(${folder}_test PRIVATE sluice sluice_flags sluice_test_main)
    sluice_precompile(${folder}_test pch_test)
    set_target_properties(${folder}_test PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${SLUICE_BATCH})
    if(CMAKE_CXX_CLANG_TIDY)  # A test may copy what it likes.
      set_target_properties(${folder}_test PROPERTIES CXX_CLANG_TIDY
        "${CMAKE_CXX_CLANG_TIDY};--checks=-performance-*")
    endif()
    add_test(NAME ${folder} COMMAND ${folder}_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endif()
  foreach(bench ${benches})
    get_filename_component(name ${bench} NAME_WE)
    add_executable(${name} ${bench})
    target_link_libraries(${name} PRIVATE sluice sluice_flags benchmark::benchmark)
  endforeach()
  foreach(fuzzer ${fuzzers})
    sluice_fuzzer(${fuzzer})
  endforeach()
endfunction()

# A fuzz target `<name>_fuzz`, whose corpus is tests/fuzz/<name>/: also a test
# that runs once over what is committed there.
function(sluice_fuzzer source)
  get_filename_component(target ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${target})
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE sluice sluice_flags)
  set(once "")
  if(SLUICE_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    add_dependencies(sluice_fuzzers ${target})
    set(once -runs=0)
  else()
    target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/fuzz_replay.cc)
  endif()
  add_test(NAME ${target} COMMAND ${target} ${once} tests/fuzz/${name}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endfunction()

# Called once, after the last folder.
function(sluice_link_shared_library)
  set(objects "")
  foreach(target ${SLUICE_OBJECTS})
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  add_library(sluice SHARED ${objects})
  target_include_directories(sluice INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/gen)
  target_link_libraries(sluice PUBLIC sluice_third_party PRIVATE sluice_flags ${SLUICE_LINKED})
  add_library(Sluice::sluice ALIAS sluice)
endfunction()
