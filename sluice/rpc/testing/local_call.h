// A call without a network: what a service under test is handed.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/generic_server.h"

namespace sluice {

// Thread-safe.
class LocalCall : public ServerCall {
 public:
  LocalCall(std::string path, std::string_view bytes) : path_(std::move(path)) {
    grpc::Slice slice(bytes.data(), bytes.size());
    request_ = grpc::ByteBuffer(&slice, 1);
  }
  LocalCall(std::string path, const google::protobuf::MessageLite& request)
      : path_(std::move(path)), request_(*ToByteBuffer(request)) {}

  const std::string& path() const override { return path_; }
  std::string peer() const override { return "ipv4:127.0.0.1:1"; }
  grpc::ByteBuffer& request() override { return request_; }

  void Reply(grpc::ByteBuffer response) override {
    Answer(absl::OkStatus(), response);
  }
  void Fail(const absl::Status& status) override { Answer(status, {}); }

  void OnCancel(absl::AnyInvocable<void()> callback) override {
    {
      MutexLock lock(mu_);
      if (answers_ > 0) return;
      if (!cancelled_) {
        on_cancel_ = std::move(callback);
        return;
      }
    }
    callback();
  }

  std::chrono::system_clock::time_point deadline() const override {
    return std::chrono::system_clock::now();
  }

  // As if the client lost its patience.
  void Cancel() {
    absl::AnyInvocable<void()> callback;
    {
      MutexLock lock(mu_);
      if (answers_ > 0) return;
      cancelled_ = true;
      callback = std::exchange(on_cancel_, nullptr);
    }
    if (callback) callback();
  }

  // False if there is no answer after `timeout`.
  bool WaitFor(std::chrono::microseconds timeout) const {
    const auto until = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(mu_);
    while (answers_ == 0) {
      if (!answered_.WaitUntil(mu_, until)) break;
    }
    return answers_ > 0;
  }
  // More than one is a mistake of the service.
  int answers() const {
    MutexLock lock(mu_);
    return answers_;
  }
  // Once answered.
  absl::Status status() const {
    MutexLock lock(mu_);
    return status_;
  }
  // Once answered: the error, or whether the answer is such a message.
  absl::Status Take(google::protobuf::MessageLite* response) {
    MutexLock lock(mu_);
    SLUICE_RETURN_IF_ERROR(status_);
    if (FromByteBuffer(&response_, response)) return absl::OkStatus();
    return Internal("The answer is no ", response->GetTypeName());
  }

 private:
  void Answer(const absl::Status& status, const grpc::ByteBuffer& response) {
    absl::AnyInvocable<void()> unused;
    MutexLock lock(mu_);
    ++answers_;
    status_ = status;
    response_ = response;
    // It may hold the call.
    unused = std::exchange(on_cancel_, nullptr);
    answered_.NotifyAll();
  }

  const std::string path_;
  grpc::ByteBuffer request_;
  mutable Mutex mu_;
  mutable CondVar answered_;
  int answers_ SLUICE_GUARDED_BY(mu_) = 0;
  bool cancelled_ SLUICE_GUARDED_BY(mu_) = false;
  absl::Status status_ SLUICE_GUARDED_BY(mu_);
  grpc::ByteBuffer response_ SLUICE_GUARDED_BY(mu_);
  absl::AnyInvocable<void()> on_cancel_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
