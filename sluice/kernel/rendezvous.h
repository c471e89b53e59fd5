// Rendezvous: where the tensors of one step change hands between devices and
// tasks. A Send puts a value under a key, a Recv takes it; whoever comes first
// waits (a Send never blocks).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/device_name.h"
#include "sluice/kernel/resource.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// The parts of "src;incarnation;dst;name;frame:iter" (docs/protocol).
struct RendezvousKey {
  DeviceName src;
  std::string src_text;
  uint64_t src_incarnation = 0;
  DeviceName dst;
  std::string dst_text;
  std::string edge;
  std::string frame_and_iter;

  static absl::StatusOr<RendezvousKey> Parse(std::string_view key);
};
// The key without its frame part, ending in ';'.
std::string RendezvousKeyPrefix(std::string_view src_device,
                                uint64_t src_incarnation,
                                std::string_view dst_device,
                                std::string_view edge);

// A value on its way: a tensor, or the news that its producer was not taken.
struct Parcel {
  Tensor tensor;
  bool dead = false;
  // When another task began to send it, by that task's clock; 0: unknown.
  int64_t sent_micros = 0;
  // The Variable to read when the parcel is taken, instead of a tensor: the
  // taker may wait for updates that come after the Send. Never set for takers.
  RefPtr<Resource> variable = {};
};

// Thread-safe. Held by everyone who may still use it.
class Rendezvous {
 public:
  using RecvDone = absl::AnyInvocable<void(absl::StatusOr<Parcel>)>;
  using GroupDone =
      absl::AnyInvocable<void(absl::StatusOr<std::vector<Parcel>>)>;

  virtual ~Rendezvous() = default;
  virtual absl::Status Send(std::string_view key, Parcel parcel) = 0;
  // `done` is called exactly once: at once if the value is there, from Send, or
  // from Abort.
  virtual void RecvAsync(std::string_view key, RecvDone done) = 0;
  // All of `keys`, which share a source device, in their order. `done` is
  // called exactly once. At least one key; they need not outlive the call.
  virtual void RecvGroupAsync(std::span<const std::string> keys,
                              GroupDone done);
  // Every waiting and every later call gets `status`. The first abort counts.
  virtual void Abort(absl::Status status) = 0;
};

// Within one process.
class LocalRendezvous : public Rendezvous {
 public:
  LocalRendezvous();
  ~LocalRendezvous() override;
  absl::Status Send(std::string_view key, Parcel parcel) override;
  void RecvAsync(std::string_view key, RecvDone done) override;
  void Abort(absl::Status status) override;
  // Keys somebody waits for.
  std::vector<std::string> Waiting() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
