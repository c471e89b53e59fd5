// Which sanitizers this is built with; gcc and clang say so in different ways.
#pragma once

#if defined(__has_feature)
#define SLUICE_HAS_FEATURE(NAME) __has_feature(NAME)
#else
#define SLUICE_HAS_FEATURE(NAME) false
#endif

namespace sluice {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = SLUICE_HAS_FEATURE(address_sanitizer);
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = SLUICE_HAS_FEATURE(thread_sanitizer);
#endif

}  // namespace sluice

#undef SLUICE_HAS_FEATURE
