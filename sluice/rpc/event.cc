#include "sluice/rpc/event.h"

#include <pthread.h>

#include <algorithm>

#include "sluice/base/thread_pool.h"
#include "sluice/worker/worker.h"

namespace sluice {

int PollingThreads() { return std::clamp(UsableCores() / 4, 1, 4); }

void PollEvents(grpc::CompletionQueue* queue, const char* thread_name) {
  pthread_setname_np(pthread_self(), thread_name);
  Worker::MarkNetworkThread();
  void* tag;
  bool ok;
  while (queue->Next(&tag, &ok)) {
#ifdef SLUICE_THREAD_SANITIZER
    __tsan_acquire(tag);
#endif
    static_cast<Event*>(tag)->Proceed(ok);
  }
}

}  // namespace sluice
