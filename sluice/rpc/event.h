// What completion queues carry and who polls them. Private to rpc/.
#pragma once

#include <grpcpp/completion_queue.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* at);
extern "C" void __tsan_release(void* at);
#endif
#endif

namespace sluice {

// The tag of an operation.
struct Event {
  virtual ~Event() = default;
  virtual void Proceed(bool ok) = 0;
};

// To be called for the tag of each operation that starts. Returns the tag.
// Tells the thread sanitizer, which does not see into gRPC, that what was
// written until now is seen by the thread that gets the tag back.
inline Event* HandOver(Event* event) {
#ifdef SLUICE_THREAD_SANITIZER
  __tsan_release(event);
#endif
  return event;
}

// How many queues a server has, and how many all calls of this process share.
// Each has one thread: a second one would be woken for each event, to watch the
// connections while the first is busy.
int PollingThreads();

// Proceeds with the events of `queue` until it is shut down. For a thread that
// does nothing else.
void PollEvents(grpc::CompletionQueue* queue, const char* thread_name);

}  // namespace sluice
