// Scaffold: the ops a training session needs beside the training itself. What a
// program does not give is taken from the graph's collections, or made.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "sluice/graph/graph.h"
#include "sluice/session/session.h"
#include "sluice/train/saver.h"
#include "sluice/train/session_manager.h"

namespace sluice {

struct Scaffold {
  Node* init_op = nullptr;
  std::vector<Session::Feed> init_feeds = {};
  // Called after init_op when nothing was restored.
  std::function<absl::Status(Scaffold&, Session&)> init_fn = {};
  Output ready_op = {};
  Output ready_for_local_init_op = {};
  Node* local_init_op = nullptr;
  Output summary_op = {};  // May stay none.
  std::shared_ptr<Saver> saver = {};

  // Fills what is missing and closes the graph to new nodes. Once is enough;
  // more does nothing.
  absl::Status Finalize(Graph& graph);

  ReadyOps ready_ops() const {
    return {local_init_op, ready_op, ready_for_local_init_op};
  }
};

// The saver of the graph's collection; of several, FAILED_PRECONDITION; none if
// there is none.
absl::StatusOr<std::shared_ptr<Saver>> SaverOfGraph(Graph& graph);

}  // namespace sluice
