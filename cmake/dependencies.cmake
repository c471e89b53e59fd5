# Everything third-party, found once. Folders name what they need beyond
# abseil and protobuf in their LINK list.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf CONFIG QUIET)
if(NOT Protobuf_FOUND)
  find_package(Protobuf REQUIRED)
endif()
find_package(gRPC CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Snappy REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)

add_library(sluice_third_party INTERFACE)
target_link_libraries(sluice_third_party INTERFACE
  protobuf::libprotobuf Threads::Threads
  absl::status absl::statusor absl::strings absl::str_format
  absl::flat_hash_map absl::flat_hash_set absl::inlined_vector
  absl::any_invocable absl::function_ref absl::span absl::hash absl::int128)

add_library(sluice_test_main INTERFACE)
target_link_libraries(sluice_test_main INTERFACE GTest::gmock GTest::gtest GTest::gtest_main)
