// Client: programs that train on the cluster of a simulation as users' do, and
// the book of what they were told.
#pragma once

#include <array>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/kernel/cancellation.h"
#include "sluice/proto/master.pb.h"
#include "sluice/rpc/lease.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/fiber.h"

namespace sluice::sim {

// A call of the client that is under way.
struct ClientCall {
  const char* path;
  std::string what;
  SteadyTime since;
  bool may_wait = false;  // As long as it takes: a dequeue.
};

// Thread-compatible.
class Client {
 public:
  explicit Client(Cluster& cluster);

  // Trains in several sessions, one after the other, on worker `w`'s master.
  // After `dies` it is gone, as by kill -9.
  void StartTrainer(int w, std::optional<nanoseconds> dies);
  // Takes from the queue until CloseConsumers.
  void StartConsumer(int w, std::optional<nanoseconds> dies);
  // From now on a dequeue has no deadline.
  void CalmDown() { calm_ = true; }
  // Closes the sessions of all consumers while they wait.
  void CloseConsumers();
  // Opens and closes a session on each master, so that workers hear of their
  // new lives.
  void Sweep();

  // Whether a program is not over: consumers, and all others.
  bool consuming() const;
  bool busy() const;
  const std::list<ClientCall>& open_calls() const { return calls_; }
  // The invariants about updates.
  void CheckUpdates();

  int attempted() const { return static_cast<int>(pushes_.size()); }
  int acknowledged = 0;
  int sessions = 0;
  int deaths = 0;
  int taken_in = 0;  // Sessions that went on with a restarted worker.
  double longest_step = 0;

 private:
  struct CallAwaiter;
  struct SleepAwaiter;
  struct OpenSession {
    std::string address;  // Of its master.
    std::string handle;
    int64_t version = 0;    // Of its graph.
    bool extended = false;  // By Extend.
    // Of the ps and of the worker that relays, when it first used them.
    std::optional<std::array<Life, kNumPs>> ps_lives = {};
    std::optional<Life> relay_life = {};
  };
  // A step that adds its mark.
  struct Push {
    bool acknowledged = false;
    // Of the ps, if they were the same all the time.
    std::array<Life, kNumPs> lives = {};
  };

  // Programs end when `life` is cancelled, without closing anything.
  Fiber Train(int w, Cancellation* life);
  Fiber Consume(int w, Cancellation* life);
  // Parts of programs; `status` is what they ended with.
  // Adds nodes by which a push may go as well.
  Fiber Extend(OpenSession* session, Cancellation* life, absl::Status* status);
  // A step in two parts, the second of which may never be run.
  Fiber RunInParts(OpenSession session, Cancellation* life,
                   absl::Status* status);
  // Pushes twice by one callable.
  Fiber RunCallable(OpenSession session, Cancellation* life,
                    absl::Status* status);
  Cancellation* NewLife(std::optional<nanoseconds> dies);
  Fiber Close(OpenSession session);
  Fiber SweepMaster(std::string address);

  CallAwaiter Call(const std::string& address, const char* path,
                   const google::protobuf::MessageLite& request,
                   std::string what, nanoseconds timeout = nanoseconds(0),
                   bool may_wait = false, Cancellation* life = nullptr);
  CallAwaiter OpenOn(int w, bool filtered, Cancellation* life);
  // Held as long as the lease lives.
  std::unique_ptr<Lease> Hold(const OpenSession& session);
  CallAwaiter CloseSession(const OpenSession& session);
  void Ended(const ClientCall& call);
  SleepAwaiter Sleep(nanoseconds shortest, nanoseconds longest);
  pb::RunStepRequest StepOf(const OpenSession& session);
  pb::RunStepRequest PushOf(const OpenSession& session, int mark, bool relayed);
  // The place of a new push, if there is one left.
  std::optional<int> NewMark();
  void Acknowledge(int mark, const std::array<Life, kNumPs>& lives);
  // Pushes acknowledged in these lives.
  std::set<int> Known(const std::array<Life, kNumPs>& lives) const;
  void CheckPull(const pb::RunStepResponse& response,
                 const std::set<int>& known,
                 const std::array<Life, kNumPs>& lives);
  void CheckLives(const std::array<Life, kNumPs>& ps_lives,
                  const std::optional<Life>& relay_life, OpenSession* session);
  void CheckCode(const absl::Status& status, const std::string& what);
  void Take(const pb::RunStepResponse& response);

  Cluster& cluster_;
  std::map<std::string, std::shared_ptr<RpcChannel>> channels_;
  const std::array<pb::GraphDef, kNumWorkers>* graphs_;
  std::list<ClientCall> calls_;
  std::vector<Push> pushes_;
  std::set<int> taken_;
  int next_token_ = 1;
  bool calm_ = false;
  bool closing_ = false;
  std::list<OpenSession> consuming_;
  std::list<Cancellation> lives_;
  std::vector<Fiber> fibers_, consumers_;
};

}  // namespace sluice::sim
