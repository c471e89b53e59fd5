// A channel that has only a lane, and has it from the start.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/rpc/lane_client.h"

namespace sluice {

// Thread-safe.
class LaneOnly : public RpcChannel {
 public:
  // nullptr if nobody says hello there.
  static std::shared_ptr<LaneOnly> Connect(const std::string& lane) {
    auto channel = std::make_shared<LaneOnly>();
    channel->name_ = lane;
    Notification ready;
    LaneClient::Connect(lane, [&](auto client) {
      if (client.ok()) channel->lane_ = *std::move(client);
      ready.Notify();
    });
    ready.Wait();
    return channel->lane_ == nullptr ? nullptr : channel;
  }
  ~LaneOnly() override {
    if (lane_ != nullptr) lane_->Release();
  }

  const std::string& address() const override { return name_; }
  LaneClient& lane() { return *lane_; }
  size_t chunk_bytes() const override { return 1 << 30; }

  using RpcChannel::Call;
  void Call(const char* path, const grpc::ByteBuffer& request,
            const Options& options, Done done) override {
    if (!lane_->Call(path, request, options, done)) {
      done(Unavailable("The lane takes no more calls"), {});
    }
  }

 private:
  std::string name_;
  std::shared_ptr<LaneClient> lane_;
};

}  // namespace sluice
