# `cmake --install build --prefix P`: the library, its public headers, the
# command and the Python package. Outside programs find it by
# find_package(Sluice) or by `pkg-config sluice`. Everything is found relative
# to where it stands, so an installed tree may be moved.
include(CMakePackageConfigHelpers)

# What public headers use of abseil, and protobuf for the messages in them.
set(parts status statusor strings flat_hash_map flat_hash_set inlined_vector
  any_invocable function_ref)
list(TRANSFORM parts PREPEND absl:: OUTPUT_VARIABLE public_targets)
list(TRANSFORM parts PREPEND absl_ OUTPUT_VARIABLE public_packages)
list(APPEND public_targets protobuf::libprotobuf)
list(APPEND public_packages protobuf)
list(JOIN public_packages ", " public_packages)
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)

configure_package_config_file(cmake/SluiceConfig.cmake.in
  ${CMAKE_BINARY_DIR}/SluiceConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Sluice
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/SluiceConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
configure_file(cmake/sluice.pc.in ${CMAKE_BINARY_DIR}/sluice.pc @ONLY)

install(TARGETS sluice LIBRARY)
install(FILES ${CMAKE_BINARY_DIR}/SluiceConfig.cmake
  ${CMAKE_BINARY_DIR}/SluiceConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Sluice)
install(FILES ${CMAKE_BINARY_DIR}/sluice.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(CODE "set(ROOTS ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/gen)
  set(DESTINATION \${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR})")
install(SCRIPT cmake/install_headers.cmake)
