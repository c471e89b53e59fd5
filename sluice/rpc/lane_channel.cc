#include "sluice/rpc/lane_channel.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "absl/strings/str_format.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/lane_client.h"
#include "sluice/rpc/paths.h"

namespace sluice {
namespace {

constexpr auto kAskTimeout = std::chrono::seconds(5);
// Between attempts to get a lane: at first, and later on.
constexpr SteadyTime::duration kFirstPause = std::chrono::seconds(1);
constexpr SteadyTime::duration kLongestPause = std::chrono::minutes(1);

// Whether a lane that could not be had for this reason is never to be had.
bool IsFinal(const absl::Status& why) {
  return absl::IsNotFound(why) || absl::IsPermissionDenied(why) ||
         absl::IsUnimplemented(why) || absl::IsInvalidArgument(why);
}

class LaneChannel : public RpcChannel,
                    public std::enable_shared_from_this<LaneChannel> {
 public:
  explicit LaneChannel(std::shared_ptr<RpcChannel> grpc)
      : grpc_(std::move(grpc)) {}
  ~LaneChannel() override {
    if (lane_ != nullptr) lane_->Release();
  }

  const std::string& address() const override { return grpc_->address(); }
  // Lanes do not mind large messages; more than this has no room in one.
  size_t chunk_bytes() const override {
    constexpr size_t kLaneChunk = 1 << 30;
    MutexLock lock(mu_);
    return lane_ != nullptr ? kLaneChunk : grpc_->chunk_bytes();
  }
  bool has_lane() const override {
    MutexLock lock(mu_);
    return lane_ != nullptr && !lane_->closed();
  }
  std::optional<SteadyTime> last_answer() const override {
    std::optional<SteadyTime> last = grpc_->last_answer();
    MutexLock lock(mu_);
    if (lane_ != nullptr && (!last || lane_->last_answer() > *last)) {
      last = lane_->last_answer();
    }
    return last;
  }

  using RpcChannel::Call;
  void Call(const char* path, const grpc::ByteBuffer& request,
            const Options& options, Done done) override {
    if (const std::shared_ptr<LaneClient> lane = Lane()) {
      if (lane->Call(path, request, options, done)) return;
      if (lane->closed()) Drop(lane);
    }
    grpc_->Call(
        path, request, options,
        [weak = weak_from_this(), done = std::move(done)](
            absl::Status status, const grpc::ByteBuffer& buffer) mutable {
          if (auto self = weak.lock()) self->Learn(status);
          done(std::move(status), buffer);
        });
  }

 private:
  enum class Offer { kUnknown, kAsked, kNone, kTaken };
  using LaneOr = absl::StatusOr<std::shared_ptr<LaneClient>>;

  std::shared_ptr<LaneClient> Lane() {
    MutexLock lock(mu_);
    return lane_;
  }
  void Drop(const std::shared_ptr<LaneClient>& lane) {
    MutexLock lock(mu_);
    if (lane_ != lane) return;
    lane_ = nullptr;
    offer_ = Offer::kUnknown;
  }

  // Of the server, from how a call ended.
  void Learn(const absl::Status& status) {
    {
      MutexLock lock(mu_);
      // Whoever listens there next may be another one.
      if (absl::IsUnavailable(status) && offer_ == Offer::kNone) {
        offer_ = Offer::kUnknown;
      }
      if (!status.ok() || offer_ != Offer::kUnknown ||
          RealClock().Now() < next_try_) {
        return;
      }
      offer_ = Offer::kAsked;
    }
    Options options;
    options.deadline = RealClock().Now() + kAskTimeout;
    grpc_->Call(paths::kGetStatus, pb::GetStatusRequest(), options,
                [weak = weak_from_this()](const absl::Status& status,
                                          grpc::ByteBuffer buffer) {
                  auto self = weak.lock();
                  if (self == nullptr) return;
                  pb::GetStatusResponse response;
                  if (!status.ok()) {
                    self->Take(status);
                  } else if (!FromByteBuffer(&buffer, &response) ||
                             response.sluice_lane().empty()) {
                    self->Take(NotFound("the server has none"));
                  } else {
                    LaneClient::Connect(response.sluice_lane(),
                                        [weak](LaneOr lane) {
                                          if (auto self = weak.lock()) {
                                            self->Take(std::move(lane));
                                          } else if (lane.ok()) {
                                            (*lane)->Release();
                                          }
                                        });
                  }
                });
  }

  void Take(LaneOr lane) {
    {
      MutexLock lock(mu_);
      if (lane.ok()) {
        offer_ = Offer::kTaken;
        lane_ = *std::move(lane);
        pause_ = kFirstPause;
        return;
      }
      if (IsFinal(lane.status())) {
        offer_ = Offer::kNone;
        return;
      }
      offer_ = Offer::kUnknown;
      next_try_ = RealClock().Now() + pause_;
      const bool told = pause_ > kFirstPause;
      pause_ = std::min(2 * pause_, kLongestPause);
      if (told) return;
    }
    SLUICE_LOG(INFO) << "Calls to " << address()
                     << " go by gRPC for now: " << lane.status().message();
  }

  const std::shared_ptr<RpcChannel> grpc_;
  mutable Mutex mu_;
  Offer offer_ SLUICE_GUARDED_BY(mu_) = Offer::kUnknown;
  SteadyTime next_try_ SLUICE_GUARDED_BY(mu_);
  SteadyTime::duration pause_ SLUICE_GUARDED_BY(mu_) = kFirstPause;
  std::shared_ptr<LaneClient> lane_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace

bool LanesAllowed() {
  const char* lane = std::getenv("SLUICE_LANE");
  return lane == nullptr || std::string_view(lane) != "grpc";
}

std::string NewLaneName() {
  return absl::StrFormat("sluice-lane-%016x", RandomId());
}

absl::StatusOr<std::shared_ptr<RpcChannel>> CreateLaneChannel(
    const std::string& address, TlsIdentityPtr tls) {
  const bool plain = tls == nullptr;
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<RpcChannel> grpc,
                          RpcChannel::CreateWithTls(address, std::move(tls)));
  if (!plain || !LanesAllowed()) return grpc;
  return std::make_shared<LaneChannel>(std::move(grpc));
}

}  // namespace sluice
