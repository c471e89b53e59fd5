// EventQueue: events on their way to an event file. Another thread writes them,
// so that a training step does not wait for the disk.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "sluice/base/clock.h"
#include "sluice/base/file.h"
#include "sluice/proto/event.pb.h"

namespace sluice {

struct EventQueueOptions {
  // Add blocks when so many events wait to be written.
  int max_queue = 10;
  // How long written events may wait until readers see them. The first one is
  // seen at once.
  double flush_secs = 120;
  std::string suffix = {};  // Of the file's name.
};

// Thread-safe. An error of the disk is logged, and returned by the next Flush
// or Close.
class EventQueue {
 public:
  EventQueue(FileSystem& files, Clock& clock, std::string logdir,
             const EventQueueOptions& options = {});
  // Closes.
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // A serialized event. Ignored when closed.
  void Add(std::string event);
  void Add(const pb::Event& event) { Add(event.SerializeAsString()); }
  // Returns when readers see all events that were added before.
  absl::Status Flush();
  absl::Status Close();
  // Takes events again, into a new file.
  void Reopen();
  bool closed() const;
  // The file of the last event; empty before the first.
  std::string path() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;  // The writing thread holds it too.
};

}  // namespace sluice
