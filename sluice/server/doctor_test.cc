#include "sluice/server/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/clock.h"
#include "sluice/proto/device.pb.h"
#include "sluice/proto/task_status.pb.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/config.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/test_certificates.h"
#include "sluice/server/status.h"
#include "sluice/server/testing/cluster_test.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class DoctorTest : public ClusterTest {
 protected:
  std::vector<std::string> Addresses() const {
    return {*spec_.TaskAddress("ps", 0), *spec_.TaskAddress("worker", 0),
            *spec_.TaskAddress("worker", 1)};
  }
};

TEST_F(DoctorTest, FindsAHealthyClusterWell) {
  const std::vector<TaskDiagnosis> tasks = *Diagnose(spec_);
  ASSERT_EQ(tasks.size(), 3);
  for (const TaskDiagnosis& task : tasks) {
    EXPECT_TRUE(task.healthy) << task.finding;
    EXPECT_TRUE(task.round_trip_ms.has_value());
    ASSERT_TRUE(task.skew_ms.has_value());
    // One process, one clock.
    EXPECT_LT(std::abs(*task.skew_ms), *task.round_trip_ms + 1);
    EXPECT_EQ(task.devices.size(), 1);
  }
  EXPECT_THAT(DiagnosisText(tasks), HasSubstr("All 3 tasks are well."));
}

TEST_F(DoctorTest, TellsSwappedAddresses) {
  const std::vector<std::string> a = Addresses();
  const std::vector<TaskDiagnosis> tasks =
      *Diagnose(ClusterSpec{{"ps", {a[1]}}, {"worker", {a[0], a[2]}}});
  EXPECT_FALSE(tasks[0].healthy);
  EXPECT_EQ(tasks[0].finding, "answers as /job:worker/replica:0/task:0");
  EXPECT_THAT(tasks[0].advice, HasSubstr("swapped"));
  EXPECT_EQ(tasks[1].finding, "answers as /job:ps/replica:0/task:0");
  EXPECT_THAT(DiagnosisText(tasks), HasSubstr("3 of 3 tasks need attention."));
}

TEST_F(DoctorTest, TellsAnotherCluster) {
  const std::vector<std::string> a = Addresses();
  const std::vector<TaskDiagnosis> tasks =
      *Diagnose(ClusterSpec{{"ps", {a[0]}}, {"worker", {a[1]}}});
  EXPECT_EQ(tasks[0].finding,
            "was started with another cluster: it has "
            "/job:worker/replica:0/task:1 too");
}

TEST_F(DoctorTest, TellsTwoAddressesOfOneProcess) {
  const std::vector<std::string> a = Addresses();
  std::string same = a[0];
  same.replace(0, sizeof("localhost") - 1, "127.0.0.1");
  const std::vector<TaskDiagnosis> tasks =
      *Diagnose(ClusterSpec{{"ps", {a[0], same}}});
  EXPECT_FALSE(tasks[1].healthy);
  EXPECT_EQ(tasks[1].finding,
            "is the same process as /job:ps/replica:0/task:0 at " + a[0]);
  EXPECT_THAT(tasks[1].advice, HasSubstr("Two addresses lead to one server"));
  EXPECT_THAT(tasks[0].finding, Not(HasSubstr("same process")));
}

TEST_F(DoctorTest, TellsWhoDoesNotAnswerAndWhy) {
  Port silent;
  ASSERT_EQ(listen(silent.fd, 1), 0);
  const std::string nobody = Local(FreePorts(1)[0]);
  DoctorOptions options;
  options.timeout = std::chrono::seconds(2);
  const std::vector<TaskDiagnosis> tasks =
      *Diagnose(ClusterSpec{{"a",
                             {nobody, Local(silent.number),
                              "nowhere.invalid:2222", "no address"}}},
                options);
  EXPECT_THAT(tasks[0].finding, AllOf(HasSubstr("refused"), HasSubstr(nobody)));
  EXPECT_THAT(tasks[1].finding, HasSubstr("no answer from"));
  EXPECT_THAT(tasks[2].finding, HasSubstr("does not resolve"));
  EXPECT_THAT(tasks[3].finding, HasSubstr("host-port pair"));
  for (const TaskDiagnosis& task : tasks) {
    EXPECT_FALSE(task.healthy);
    EXPECT_FALSE(task.advice.empty());
    EXPECT_THAT(DiagnosisText(tasks), HasSubstr(task.advice));
  }
}

// Answers as /job:a/replica:0/task:0, with a status of the test's making.
class Stranger {
 public:
  using Answer = std::function<grpc::ByteBuffer()>;
  explicit Stranger(const Answer& status) {
    GenericServer::Options options;
    options.address = "localhost:0";
    options.handler = [status](const std::shared_ptr<ServerCall>& call) {
      if (call->path() == paths::kStatus) return call->Reply(status());
      pb::GetStatusResponse response;
      DeviceInfo device;
      device.text = "/job:a/replica:0/task:0/device:CPU:0";
      device.name = *DeviceName::Parse(device.text);
      device.incarnation = 1;
      DeviceToProto(device, response.add_device_attributes());
      call->Reply(*ToByteBuffer(response));
    };
    server_ = *GenericServer::Start(std::move(options));
  }
  TaskDiagnosis Examined() const {
    return (*Diagnose(ClusterSpec{{"a", {Local(server_->port())}}}))[0];
  }

 private:
  std::unique_ptr<GenericServer> server_;
};

// `seconds` ahead of this machine.
Stranger::Answer Ahead(int64_t seconds, const std::string& version) {
  return [=] {
    pb::TaskStatus status;
    status.set_version(version);
    status.set_wall_micros(RealClock().WallMicros() + seconds * 1000000);
    return *ToByteBuffer(status);
  };
}

TEST_F(DoctorTest, TellsClocksThatDiffer) {
  const TaskDiagnosis fast = Stranger(Ahead(3600, SluiceVersion())).Examined();
  EXPECT_FALSE(fast.healthy);
  EXPECT_THAT(fast.finding, testing::ContainsRegex(
                                "its clock differs by 3(600|599)\\.[0-9] s"));
  EXPECT_THAT(fast.advice, HasSubstr("NTP"));
  EXPECT_NEAR(*fast.skew_ms, 3600e3, *fast.round_trip_ms + 1);
  const TaskDiagnosis slow = Stranger(Ahead(-3600, SluiceVersion())).Examined();
  EXPECT_THAT(slow.finding, HasSubstr("its clock differs by -3"));
  EXPECT_NEAR(*slow.skew_ms, -3600e3, *slow.round_trip_ms + 1);
}

TEST_F(DoctorTest, TellsAnotherRelease) {
  const TaskDiagnosis task = Stranger(Ahead(0, "0.0.1")).Examined();
  EXPECT_FALSE(task.healthy);
  EXPECT_EQ(task.finding,
            StrCat("runs Sluice 0.0.1, this is ", SluiceVersion()));
}

TEST_F(DoctorTest, TellsAStatusThatCannotBeRead) {
  const grpc::Slice noise(std::string(100, '\xff'));
  const TaskDiagnosis task =
      Stranger([&] { return grpc::ByteBuffer(&noise, 1); }).Examined();
  EXPECT_FALSE(task.healthy);
  EXPECT_EQ(task.finding, "answers with something unreadable");
}

// Of the one task of a cluster that was started with `theirs`.
TaskDiagnosis ExaminedWithTls(const TlsOptions& theirs,
                              const TlsOptions& ours) {
  const ClusterSpec spec{{"a", {Local(FreePorts(1)[0])}}};
  auto server = *Server::Create(spec, "a", 0, {.tls = theirs});
  const TaskDiagnosis task = (*Diagnose(spec, {.tls = ours}))[0];
  SLUICE_EXPECT_OK(server->Stop());
  return task;
}

TEST_F(DoctorTest, AdvisesOnEachKindOfTlsProblem) {
  const TestCertificates certificates, others;
  const TlsOptions ours = certificates.Options();
  EXPECT_TRUE(ExaminedWithTls(ours, ours).healthy);
  const struct {
    TlsOptions theirs, ours;
    const char* finding;
    const char* advice;
  } cases[] = {
      {ours, {}, "wants TLS", "Ask with the certificates of its cluster"},
      {{}, ours, "speaks plain text", "Start it with certificates"},
      {certificates.Options("elsewhere", {"node-1"}), ours, "for other hosts",
       "a certificate for the host of its address"},
      {others.Options(), ours, "not signed by the CA",
       "certificates of one CA"},
  };
  for (const auto& c : cases) {
    const TaskDiagnosis task = ExaminedWithTls(c.theirs, c.ours);
    EXPECT_FALSE(task.healthy);
    EXPECT_THAT(task.finding, HasSubstr(c.finding));
    EXPECT_THAT(task.advice, HasSubstr(c.advice)) << task.finding;
  }
}

TEST_F(DoctorTest, NeedsCertificatesThatCanBeUsed) {
  EXPECT_THAT(
      Diagnose(spec_, {.tls = TlsOptions::InDirectory("/no/where")}).status(),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/where/tls.crt")));
}

TEST_F(DoctorTest, ListsTheDevicesOfAClusterAndWhoIsMissing) {
  auto all = *ListClusterDevices(Addresses()[1]);
  EXPECT_EQ(all.devices.size(), 3);
  EXPECT_TRUE(all.missing.empty());
  SLUICE_ASSERT_OK(ps_->Stop());
  all = *ListClusterDevices(Addresses()[1]);
  EXPECT_EQ(all.devices.size(), 2);
  ASSERT_EQ(all.missing.size(), 1);
  EXPECT_EQ(all.missing[0].task, "/job:ps/replica:0/task:0");
  EXPECT_THAT(all.missing[0].finding, HasSubstr("refused"));
}

}  // namespace
}  // namespace sluice
