#include "sluice/train/queue_runner.h"

#include <algorithm>
#include <atomic>

#include "sluice/base/logging.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/graph/scope.h"
#include "sluice/proto/queue_runner.pb.h"

namespace sluice {
namespace {

constexpr char kThreadPrefix[] = "QueueRunnerThread-";
// How long threads may take to see that they shall stop.
constexpr Coordinator::Seconds kBeforeInterrupt(1);

absl::Status RunOp(Session& session, Node* op) {
  return session.Run({}, {}, {op}, nullptr);
}

void RunIgnoringErrors(Session& session, Node* op) {
  if (absl::Status status = RunOp(session, op); !status.ok()) {
    SLUICE_VLOG(1) << "Ignored error: " << status;
  }
}

absl::StatusOr<Node*> FindOp(const Graph& graph, const std::string& name) {
  if (Node* node = graph.FindNode(name)) return node;
  return InvalidArgument("a queue runner names '", name,
                         "', which is not in the graph");
}

}  // namespace

void QueueRunner::Start(std::shared_ptr<Session> session,
                        Coordinator& coordinator) const {
  auto running = std::make_shared<std::atomic<size_t>>(enqueue_ops.size());
  // The coordinator's state outlives its threads; a copy shares it.
  const std::string prefix = StrCat(kThreadPrefix, queue.node->name(), "-");
  for (Node* op : enqueue_ops) {
    coordinator.Start(prefix + op->name(),
                      [session, op, running, close = close_op,
                       coordinator = coordinator]() -> absl::Status {
                        absl::Status status;
                        while (!coordinator.ShouldStop() && status.ok()) {
                          status = RunOp(*session, op);
                        }
                        const bool last = running->fetch_sub(1) == 1;
                        if (!absl::IsOutOfRange(status)) return status;
                        if (last && close != nullptr)
                          RunIgnoringErrors(*session, close);
                        return absl::OkStatus();
                      });
  }
  if (cancel_op == nullptr) return;
  coordinator.Start(prefix + "close_on_stop", [session, cancel = cancel_op,
                                               coordinator = coordinator] {
    while (!coordinator.WaitForStop(Coordinator::Seconds(60))) {
    }
    RunIgnoringErrors(*session, cancel);
    return absl::OkStatus();
  });
}

QueueRunner MakeQueueRunner(const Scope& scope, Output queue,
                            std::vector<Node*> enqueue_ops) {
  QueueRunner runner;
  runner.queue = queue;
  runner.enqueue_ops = std::move(enqueue_ops);
  if (!queue) return runner;
  const std::string op =
      TypeOf(queue) == DType::kResource ? "QueueCloseV2" : "QueueClose";
  const Scope named =
      scope.Named(StrCat(BaseName(queue.node->name()), "_Close"));
  runner.close_op = named.AddNode(op, {queue});
  runner.cancel_op =
      named.AddNode(op, {queue}, {{"cancel_pending_enqueues", true}});
  return runner;
}

void AddQueueRunner(Graph& graph, const QueueRunner& runner) {
  pb::QueueRunnerDef def;
  def.set_queue_name(TensorName(runner.queue));
  for (const Node* op : runner.enqueue_ops) def.add_enqueue_op_name(op->name());
  if (runner.close_op != nullptr) {
    def.set_close_op_name(runner.close_op->name());
  }
  if (runner.cancel_op != nullptr) {
    def.set_cancel_op_name(runner.cancel_op->name());
  }
  def.add_queue_closed_exception_types(pb::error::OUT_OF_RANGE);
  Collections::Of(graph).Add(keys::kQueueRunners, def.SerializeAsString());
}

absl::StatusOr<std::vector<QueueRunner>> QueueRunners(Graph& graph) {
  std::vector<QueueRunner> runners;
  for (const std::string& bytes :
       Collections::Of(graph).messages(keys::kQueueRunners)) {
    pb::QueueRunnerDef def;
    if (!def.ParseFromString(bytes)) {
      return InvalidArgument("a queue runner of the graph does not parse");
    }
    QueueRunner& runner = runners.emplace_back();
    SLUICE_ASSIGN_OR_RETURN(runner.queue, graph.FindOutput(def.queue_name()));
    for (const std::string& name : def.enqueue_op_name()) {
      SLUICE_ASSIGN_OR_RETURN(Node * op, FindOp(graph, name));
      runner.enqueue_ops.push_back(op);
    }
    if (!def.close_op_name().empty()) {
      SLUICE_ASSIGN_OR_RETURN(runner.close_op,
                              FindOp(graph, def.close_op_name()));
    }
    if (!def.cancel_op_name().empty()) {
      SLUICE_ASSIGN_OR_RETURN(runner.cancel_op,
                              FindOp(graph, def.cancel_op_name()));
    }
  }
  return runners;
}

absl::Status StartQueueRunners(Graph& graph, std::shared_ptr<Session> session,
                               Coordinator& coordinator) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<QueueRunner> runners,
                          QueueRunners(graph));
  for (const QueueRunner& runner : runners) runner.Start(session, coordinator);
  return absl::OkStatus();
}

void StopThreads(Coordinator& coordinator, Session* session,
                 Coordinator::Seconds grace) {
  coordinator.RequestStop();
  const auto is_runner = [](const std::string& name) {
    return name.starts_with(kThreadPrefix);
  };
  while (grace.count() > 0 &&
         !coordinator.JoinFor(std::min(grace, kBeforeInterrupt))) {
    grace -= kBeforeInterrupt;
    if (session != nullptr &&
        std::ranges::all_of(coordinator.live_threads(), is_runner)) {
      session->Interrupt();
    }
  }
}

}  // namespace sluice
