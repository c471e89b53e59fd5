// GenericServer: serves calls by their path. One table says who handles what;
// nothing is registered with protobuf or gRPC under TensorFlow's names.
//
// Calls are state machines on completion queues that our own threads poll, so
// thousands can wait open. Private to rpc/ and server/.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/limits.h"
#include "sluice/rpc/call_counters.h"
#include "sluice/rpc/tls.h"

namespace sluice {

// A call being answered. Thread-safe. Kept alive by whoever will answer it.
class ServerCall {
 public:
  virtual ~ServerCall() = default;
  virtual const std::string& path() const = 0;
  // Who calls, as gRPC names it: "ipv4:10.0.0.1:4711".
  virtual std::string peer() const { return ""; }
  virtual grpc::ByteBuffer& request() = 0;
  // Exactly one of these, once, from any thread.
  virtual void Reply(grpc::ByteBuffer response) = 0;
  virtual void Fail(const absl::Status& status) = 0;
  // Called once if the client goes away or its deadline passes before the
  // answer. At once if that has happened already.
  virtual void OnCancel(absl::AnyInvocable<void()> callback) = 0;
  // When the client gives up; far away if it does not.
  virtual std::chrono::system_clock::time_point deadline() const = 0;
};

// Runs on a polling thread and must not block.
using CallHandler = std::function<void(std::shared_ptr<ServerCall>)>;

class GenericServer {
 public:
  struct Options {
    std::string address;  // "localhost:2222", "[::]:0".
    CallHandler handler;
    // Counts the calls; may be null.
    std::shared_ptr<CallCounters> counters;
    TlsIdentityPtr tls = {};  // Null: plain text.
    // The name of a lane to serve as well; empty: none.
    std::string lane = {};
    Limits limits = {};
  };
  // Binds and serves. UNKNOWN if the address cannot be had.
  static absl::StatusOr<std::unique_ptr<GenericServer>> Start(Options options);
  ~GenericServer();  // Shutdown.

  int port() const;
  // Refuses new calls, cancels open ones, and returns when all are answered.
  void Shutdown();

 private:
  struct State;
  explicit GenericServer(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace sluice
