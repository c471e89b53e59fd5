// Network: RpcChannel and ServerCall between the tasks of a simulation, with
// the faults of a real one. Services and stubs above it are the product's own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/kernel/step.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/tensor/tensor.h"
#include "tests/simulation/scheduler.h"

namespace sluice::sim {

// How a link treats messages. All of it is drawn from the seed.
struct Weather {
  nanoseconds longest_delay = milliseconds(2);  // Uniform from 0.1 ms.
  double slow = 0;       // A message that takes up to 3 s.
  double lost = 0;       // The connection breaks under a request or an answer.
  double duplicate = 0;  // A request arrives twice.
};

// Mistakes a test plants, to see that they are found.
struct PlantedBugs {
  // A part of a step is answered for and never run.
  bool answers_without_running = false;
  // A step is asked for twice, and the second request has another id.
  bool runs_twice = false;
  // An answer is lost and nobody ever tells the caller.
  bool forgets_the_caller = false;
  // The request to forget something is answered, but never delivered.
  bool keeps_sessions = false;         // Of a worker.
  bool keeps_master_sessions = false;  // The client's own request.
  bool keeps_steps = false;
  // A task never hears that the holder of a session is gone.
  bool keeps_leases = false;
  // A client hears of an error that it can do nothing about.
  bool wrong_code = false;
  // A client that fetches gets once more what it got the first time.
  bool repeats_fetches = false;
  // Clients hear of their steps later than was promised.
  bool answers_late = false;
  // The wait table forgets who waits.
  bool hides_waits = false;
  // It forgets the sessions that wait for a task.
  bool hides_missing_tasks = false;
  // Something stays behind when all is over.
  bool leaks_tensors = false;
  bool leaks_waits = false;
  bool leaks_timers = false;
  bool leaks_tasks = false;
};

// Thread-compatible.
class Network {
 public:
  // How long a peer may be silent before its connection counts as broken; what
  // gRPC's keepalive gives (rpc/client_call.cc).
  static constexpr nanoseconds kSilence = seconds(25);

  Network(Scheduler& scheduler, Trace& trace)
      : scheduler_(scheduler), trace_(trace) {}
  ~Network();

  Weather weather;
  PlantedBugs planted;

  // A way from `from` (a task's address, or any name) to `to`, for use by
  // `life`.
  std::shared_ptr<RpcChannel> Connect(const std::string& from, Life life,
                                      const std::string& to);
  void Listen(const std::string& address, Life life, CallHandler handler);
  // The task at `address` is gone: its connections break, and peers notice.
  void Vanish(const std::string& address);
  // No message passes between the two, until Heal.
  void Cut(const std::string& a, const std::string& b);
  void Heal(const std::string& a, const std::string& b);
  void HealAll();
  bool IsCut(const std::string& a, const std::string& b) const {
    return cuts_.contains(Between(a, b));
  }

  // A call that a living task has taken and not answered.
  struct TakenCall {
    int64_t id;
    std::string to, method;
    grpc::ByteBuffer request;
  };
  std::vector<TakenCall> TakenCalls(const std::string& from) const;

  size_t num_open_calls() const { return calls_.size(); }
  std::string DescribeOpenCalls() const;
  // Messages so far, for the report.
  int64_t messages = 0;
  int64_t faults = 0;

 private:
  class Channel;
  class ServedCall;
  struct Call;
  using CallPtr = std::shared_ptr<Call>;
  struct Listener {
    Life life;
    CallHandler handler;
  };
  using Link = std::pair<std::string, std::string>;

  void Start(const CallPtr& call, const grpc::ByteBuffer& request);
  // A request arrives, or waits until its link is whole again.
  void Deliver(const CallPtr& call, const grpc::ByteBuffer& request);
  void Serve(const CallPtr& call, const grpc::ByteBuffer& request);
  // The server at `life` has answered.
  void Answer(const CallPtr& call, Life life, absl::Status status,
              grpc::ByteBuffer response);
  void DeliverAnswer(const CallPtr& call, const absl::Status& status,
                     const grpc::ByteBuffer& response);
  // After `delay` the caller hears that the connection broke.
  void Break(const CallPtr& call, nanoseconds delay, const char* why);
  // The caller's end of a call, and the news of it for the servers.
  void Finish(const CallPtr& call, const absl::Status& status,
              const grpc::ByteBuffer& response);
  bool IsCut(const Call& call) const;
  // The bugs that are planted in a request on its way, and in its answer.
  bool AnswersFor(const Call& call);
  void PlantLeaks(const Listener& listener);
  void PlantWaitsForEver();
  void PlantInAnswer(const Call& call, absl::Status* status,
                     grpc::ByteBuffer* response);
  void BreakSilentCalls(const Link& link);
  nanoseconds Delay();
  void Log(const Call& call, const std::string& what);
  static Link Between(const std::string& a, const std::string& b) {
    return a < b ? Link(a, b) : Link(b, a);
  }

  Scheduler& scheduler_;
  Trace& trace_;
  std::map<std::string, Listener> listeners_;
  std::map<Link, int64_t> cuts_;  // And the number of the cut.
  int64_t next_cut_ = 1;
  std::map<int64_t, CallPtr> calls_;  // That their callers wait for.
  int64_t next_call_ = 1;
  // What planted bugs keep.
  std::map<int, grpc::ByteBuffer> first_fetches_;  // By the number of tensors.
  std::vector<Tensor> kept_tensors_;
  std::vector<CallHandler> kept_handlers_;
  std::vector<WaitTable::Token> kept_waits_;
};

}  // namespace sluice::sim
