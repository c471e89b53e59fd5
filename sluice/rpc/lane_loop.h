// LaneLoop: a thread that watches sockets of lanes (docs/protocol) and lets
// their owners proceed. Private to rpc/.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "sluice/base/clock.h"
#include "sluice/base/mutex.h"

namespace sluice {

// Thread-safe. Lives for ever once made.
class LaneLoop {
 public:
  using Id = uint64_t;
  // Called on the loop's thread, one at a time; must not block.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    // With EPOLLIN and the like.
    virtual void Ready(uint32_t events) = 0;
    // Every two seconds or so.
    virtual void Tick(SteadyTime now) = 0;

   protected:
    Id loop_id() const { return loop_id_; }

   private:
    friend class LaneLoop;
    Id loop_id_ = 0;  // Set when it is added, before the first call.
  };

  // Loops take turns. The first call makes them, so that programs may fork
  // before.
  static LaneLoop& Next();
  // Whether the loops, and all lanes with them, are those of the process that
  // this one was forked from. It has their sockets and must not touch them.
  static bool AreParents();

  // Watches `fd` for input. The watcher is kept until it is removed, the
  // descriptor must stay open until then. An error if the system cannot; then
  // the watcher is not called.
  absl::Status Add(int fd, std::shared_ptr<Watcher> watcher);
  // Whether to watch for input, and for room to write.
  void Watch(Id id, int fd, bool input, bool output);
  // When it returns, the watcher is not called and will not be; called from
  // the loop's own thread, it may be the one that runs.
  void Remove(Id id, int fd);

 private:
  LaneLoop();
  void Run();
  // Both return how many events there are.
  int Wait(std::span<epoll_event> events,
           std::chrono::milliseconds timeout) const;
  int Spin(std::span<epoll_event> events);
  // Calls `visit` with the watcher, if it is still there.
  template <typename Visit>
  void Call(Id id, Visit visit);
  void Tick();

  const int epoll_;       // -1 if the system gave none; then it has no thread.
  SteadyTime next_spin_;  // Of the loop's thread.
  Mutex mu_;
  CondVar returned_;
  absl::flat_hash_map<Id, std::shared_ptr<Watcher>> watchers_
      SLUICE_GUARDED_BY(mu_);
  Id next_ SLUICE_GUARDED_BY(mu_) = 1;
  Id running_ SLUICE_GUARDED_BY(mu_) = 0;   // Whose watcher is called now.
  int waiting_ SLUICE_GUARDED_BY(mu_) = 0;  // Calls of Remove.
};

}  // namespace sluice
