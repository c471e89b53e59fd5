// Channels between tasks of a test without a network.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "sluice/base/blocking_pool.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/base/timer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/generic_server.h"

namespace sluice {

// Who serves at which address. Thread-safe.
class LocalHandlers {
 public:
  void Set(const std::string& address, CallHandler handler) {
    MutexLock lock(mu_);
    handlers_[address] = std::move(handler);
  }
  void Clear() {
    std::map<std::string, CallHandler> gone;
    MutexLock lock(mu_);
    gone.swap(handlers_);
  }
  // Empty if nobody does.
  CallHandler Find(const std::string& address) const {
    MutexLock lock(mu_);
    const auto it = handlers_.find(address);
    return it == handlers_.end() ? CallHandler() : it->second;
  }

 private:
  mutable Mutex mu_;
  std::map<std::string, CallHandler> handlers_ SLUICE_GUARDED_BY(mu_);
};

// Calls run where they are made; there is nobody at other addresses.
// Thread-safe.
class LocalChannel : public RpcChannel {
 public:
  LocalChannel(std::shared_ptr<LocalHandlers> handlers, std::string address)
      : handlers_(std::move(handlers)), address_(std::move(address)) {}
  const std::string& address() const override { return address_; }

  using RpcChannel::Call;
  void Call(const char* path, const grpc::ByteBuffer& request,
            const Options& options, Done done) override {
    const CallHandler handler = handlers_->Find(address_);
    if (!handler) {
      done(Unavailable("Connection refused"), {});
      return;
    }
    auto call = std::make_shared<Served>(path, request, options.cancellation,
                                         std::move(done));
    call->Begin();
    if (options.deadline) {
      CallLater(*options.deadline - std::chrono::steady_clock::now(),
                [weak = std::weak_ptr<Served>(call)] {
                  if (auto late = weak.lock()) {
                    late->End(DeadlineExceeded("Deadline Exceeded"));
                  }
                });
    }
    handler(call);
  }

 private:
  class Served : public ServerCall,
                 public std::enable_shared_from_this<Served> {
   public:
    Served(const char* path, const grpc::ByteBuffer& request,
           Cancellation* cancellation, Done done)
        : path_(path),
          cancellation_(cancellation),
          request_(request),
          done_(std::move(done)) {}

    const std::string& path() const override { return path_; }
    std::string peer() const override { return "ipv4:127.0.0.1:2"; }
    grpc::ByteBuffer& request() override { return request_; }
    void Reply(grpc::ByteBuffer response) override {
      Answer(absl::OkStatus(), response);
    }
    void Fail(const absl::Status& status) override { Answer(status, {}); }
    std::chrono::system_clock::time_point deadline() const override {
      return std::chrono::system_clock::time_point::max();
    }
    void OnCancel(absl::AnyInvocable<void()> callback) override {
      {
        MutexLock lock(mu_);
        if (!done_ && !ended_) return;
        if (!ended_) {
          on_cancel_ = std::move(callback);
          return;
        }
      }
      callback();
    }

    void Begin() {
      if (cancellation_ == nullptr) return;
      // Elsewhere, as a call that ends gives up its place there.
      const auto end = [weak = weak_from_this(), this] {
        RunBlocking([weak, why = cancellation_->status()] {
          if (auto call = weak.lock()) call->End(why);
        });
      };
      const auto token = cancellation_->Register(end);
      {
        MutexLock lock(mu_);
        token_ = token;
      }
      if (token == Cancellation::kNone) end();
    }
    // The caller does not wait any more.
    void End(const absl::Status& why) {
      absl::AnyInvocable<void()> callback;
      {
        MutexLock lock(mu_);
        if (!done_) return;
        ended_ = true;
        callback = std::exchange(on_cancel_, nullptr);
      }
      Answer(why, {});
      if (callback) callback();
    }

   private:
    void Answer(const absl::Status& status, const grpc::ByteBuffer& response) {
      Done done;
      absl::AnyInvocable<void()> unused;  // It may hold the call.
      Cancellation::Token token;
      {
        MutexLock lock(mu_);
        done = std::exchange(done_, nullptr);
        unused = std::exchange(on_cancel_, nullptr);
        token = std::exchange(token_, Cancellation::kNone);
      }
      if (!done) return;
      if (token != Cancellation::kNone) cancellation_->Deregister(token);
      done(status, response);
    }

    const std::string path_;
    Cancellation* const cancellation_;
    grpc::ByteBuffer request_;
    Mutex mu_;
    Done done_ SLUICE_GUARDED_BY(mu_);  // Empty once answered.
    bool ended_ SLUICE_GUARDED_BY(mu_) = false;
    Cancellation::Token token_ SLUICE_GUARDED_BY(mu_) = Cancellation::kNone;
    absl::AnyInvocable<void()> on_cancel_ SLUICE_GUARDED_BY(mu_);
  };

  const std::shared_ptr<LocalHandlers> handlers_;
  const std::string address_;
};

}  // namespace sluice
