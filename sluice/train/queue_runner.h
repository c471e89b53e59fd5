// Queue runners: threads that keep a queue filled while a session trains.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"
#include "sluice/session/session.h"
#include "sluice/train/coordinator.h"

namespace sluice {

// A value; nodes belong to the graph.
struct QueueRunner {
  Output queue;
  std::vector<Node*> enqueue_ops;  // A thread each.
  Node* close_op = nullptr;        // When the input has ended.
  Node* cancel_op = nullptr;       // When all are asked to stop.

  // Starts its threads. An OUT_OF_RANGE of an enqueue op ends its thread, and
  // the last one closes the queue; another error stops all.
  void Start(std::shared_ptr<Session> session, Coordinator& coordinator) const;
};

// One that closes `queue` by ops of its own.
QueueRunner MakeQueueRunner(const Scope& scope, Output queue,
                            std::vector<Node*> enqueue_ops);

// Keeps it in the graph's collection, from where sessions start it.
void AddQueueRunner(Graph& graph, const QueueRunner& runner);
absl::StatusOr<std::vector<QueueRunner>> QueueRunners(Graph& graph);
absl::Status StartQueueRunners(Graph& graph, std::shared_ptr<Session> session,
                               Coordinator& coordinator);

// Asks all threads to stop and waits for them up to `grace`. Queue runners may
// wait in a step for what nobody sends any more: when only they are left, the
// steps of the session are interrupted. `session` may be null.
void StopThreads(Coordinator& coordinator, Session* session,
                 Coordinator::Seconds grace);

}  // namespace sluice
