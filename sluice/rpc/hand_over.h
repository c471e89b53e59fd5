// What the thread sanitizer must be told, because gRPC is not built with it:
// whatever was written before a tag went to gRPC is seen by the thread that
// gets the tag back. Private to rpc/.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* at);
extern "C" void __tsan_release(void* at);
#endif
#endif

namespace sluice {

// Before the operation that carries `tag` starts. Returns `tag`.
template <typename Tag>
inline Tag* HandOver(Tag* tag) {
#ifdef SLUICE_THREAD_SANITIZER
  __tsan_release(tag);
#endif
  return tag;
}

// After a completion queue gave `tag` back. Returns `tag`.
inline void* TakeOver(void* tag) {
#ifdef SLUICE_THREAD_SANITIZER
  __tsan_acquire(tag);
#endif
  return tag;
}

}  // namespace sluice
