// What callers hear when the two ends of a connection do not agree on TLS.
#include "sluice/rpc/tls_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/rpc/testing/test_certificates.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TlsIdentityPtr With(const CertifiedKey& own, const CertifiedKey& ca) {
  return std::make_shared<TlsIdentity>(
      TlsIdentity{own.certificate, own.key, ca.certificate});
}

class TlsProbeTest : public testing::Test {
 protected:
  // Serves with `tls`, calls with another, and tells what came of it.
  absl::Status Call(const TlsIdentityPtr& server_tls,
                    const TlsIdentityPtr& client_tls,
                    const std::string& host = "localhost") {
    GenericServer::Options options;
    options.address = "localhost:0";
    options.handler = [](std::shared_ptr<ServerCall> call) {
      call->Reply(*ToByteBuffer(pb::GetStatusResponse()));
    };
    options.tls = server_tls;
    auto server = *GenericServer::Start(std::move(options));
    address_ = StrCat(host, ":", server->port());
    auto channel = *RpcChannel::CreateWithTls(address_, client_tls);
    Notification done;
    absl::Status result;
    channel->Call("/a/b", *ToByteBuffer(pb::GetStatusRequest()), {},
                  [&](absl::Status status, grpc::ByteBuffer) {
                    result = std::move(status);
                    done.Notify();
                  });
    EXPECT_TRUE(done.WaitFor(std::chrono::seconds(60)));
    return result;
  }
  void ExpectProblem(const absl::Status& status, const std::string& text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(text), HasSubstr(address_)));
    EXPECT_EQ(WhyUnreachable(address_, status), status.message());
  }
  CertifiedKey Make(const std::string& host, int days = 1) {
    return *MakeCertificate({.name = "x", .hosts = {host}, .days = days}, ca_);
  }

  const CertifiedKey ca_ = *MakeCa({.name = "CA"});
  const CertifiedKey other_ca_ = *MakeCa({.name = "Another CA"});
  const TlsIdentityPtr good_ = With(Make("localhost"), ca_);
  const TlsIdentityPtr stranger_ =
      With(*MakeCertificate({.name = "x", .hosts = {"localhost"}}, other_ca_),
           other_ca_);
  std::string address_;
};

TEST_F(TlsProbeTest, TwoOfOneCaAgree) {
  SLUICE_EXPECT_OK(Call(good_, With(Make("elsewhere"), ca_)));
  SLUICE_EXPECT_OK(Call(With(Make("127.0.0.1"), ca_), good_, "127.0.0.1"));
}

TEST_F(TlsProbeTest, APlainClientIsToldOfTls) {
  ExpectProblem(Call(good_, nullptr), "wants TLS");
}

TEST_F(TlsProbeTest, ATlsClientIsToldOfPlainText) {
  ExpectProblem(Call(nullptr, good_), "speaks plain text");
}

TEST_F(TlsProbeTest, AServerOfAnotherCaIsToldOf) {
  ExpectProblem(Call(stranger_, good_), "not signed by the CA of this side");
}

TEST_F(TlsProbeTest, AServerWhoseCertificateHasExpiredIsToldOf) {
  ExpectProblem(Call(With(Make("localhost", -1), ca_), good_), "has expired");
}

TEST_F(TlsProbeTest, AServerForAnotherHostIsToldOf) {
  ExpectProblem(Call(With(Make("elsewhere"), ca_), good_), "for other hosts");
  ExpectProblem(Call(good_, good_, "127.0.0.1"), "for other hosts");
}

TEST_F(TlsProbeTest, AClientOfAnotherCaIsNotTaken) {
  auto mixed = std::make_shared<TlsIdentity>(*stranger_);
  mixed->ca = ca_.certificate;
  ExpectProblem(Call(good_, mixed), "does not take the certificate");
}

TEST_F(TlsProbeTest, AClientWithoutACertificateIsNotTaken) {
  auto bare = std::make_shared<TlsIdentity>();
  bare->ca = ca_.certificate;
  ExpectProblem(Call(good_, bare), "does not take the certificate");
}

TEST_F(TlsProbeTest, AClientWhoseCertificateHasExpiredIsNotTaken) {
  ExpectProblem(Call(good_, With(Make("localhost", -1), ca_)),
                "it has expired");
}

// A peer that tries again and again must not fill the log.
TEST_F(TlsProbeTest, GrpcComplainsOnce) {
  static Mutex mu;
  static std::vector<std::string> lines;
  SetLogSinkForTest([](LogLevel, const std::string& line) {
    MutexLock lock(mu);
    if (line.find("gRPC: ") != std::string::npos) lines.push_back(line);
  });
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Call(nullptr, good_).ok());
  SetLogSinkForTest({});
  MutexLock lock(mu);
  // None, if another test has just had the same trouble.
  EXPECT_LE(lines.size(), 1u);
}

TEST_F(TlsProbeTest, ADeadAddressIsStillRefused) {
  SLUICE_ASSERT_OK(Call(good_, good_));  // Gone by now.
  EXPECT_EQ(TlsProblem(address_, good_), "");
  EXPECT_EQ(TlsProblem(address_, nullptr), "");
}

}  // namespace
}  // namespace sluice
