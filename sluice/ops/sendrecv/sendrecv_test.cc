#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr char kPs[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kWorker[] = "/job:worker/replica:0/task:0/device:CPU:0";

AttrMap EdgeAttrs(std::string_view name) {
  return {{"tensor_name", name},
          {"send_device", kPs},
          {"send_device_incarnation", 5},
          {"recv_device", kWorker}};
}

AttrMap RecvAttrs(std::string_view name, DType type) {
  AttrMap attrs = EdgeAttrs(name);
  attrs.Set("tensor_type", type);
  return attrs;
}

TEST(SendRecv, MeetInTheRendezvous) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* send = session.Add(
      "_Send", {session.Value(Tensor::Vector<float>({1, 2}))}, EdgeAttrs("e"));
  Node* recv = session.Add("_Recv", {}, RecvAttrs("e", DType::kFloat));
  SLUICE_ASSERT_OK(session.Run(send));
  ExpectClose(session.Output0(recv), Tensor::Vector<float>({1, 2}));
}

TEST(SendRecv, ARecvThatWaitsSaysForWhat) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* send = session.Add(
      "_HostSend", {session.Value(Tensor::Scalar<int32_t>(3))}, EdgeAttrs("w"));
  Node* recv = session.Add("_HostRecv", {}, RecvAttrs("w", DType::kInt32));
  const size_t before = WaitTable::Global().List().size();
  auto run = session.Start(recv);
  EXPECT_FALSE(run->finished());
  ASSERT_EQ(WaitTable::Global().List().size(), before + 1);
  EXPECT_EQ(WaitTable::Global().List().back().what,
            StrCat("tensor w from ", kPs));
  SLUICE_ASSERT_OK(session.Run(send));
  SLUICE_ASSERT_OK(run->Wait());
  EXPECT_EQ(run->output(0).scalar<int32_t>(), 3);
  EXPECT_EQ(WaitTable::Global().List().size(), before);
}

TEST(SendRecv, UseTheKeyOfTheWire) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* recv = session.Add("_Recv", {}, RecvAttrs("k", DType::kFloat));
  auto run = session.Start(recv);
  SLUICE_ASSERT_OK(session.rendezvous().Send(
      StrCat(kPs, ";0000000000000005;", kWorker, ";k;0:0"),
      {Tensor::Scalar<float>(1), false}));
  SLUICE_EXPECT_OK(run->Wait());
}

TEST(SendRecv, CarryDeadValues) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* recv = session.Add("_Recv", {}, RecvAttrs("d", DType::kFloat));
  SLUICE_ASSERT_OK(session.rendezvous().Send(
      StrCat(kPs, ";0000000000000005;", kWorker, ";d;0:0"), {Tensor(), true}));
  auto run = session.Start(recv);
  SLUICE_ASSERT_OK(run->Wait());
  EXPECT_EQ(run->slot(0).kind, Slot::Kind::kDead);
}

TEST(SendRecv, ATensorOfAnotherTypeIsRefused) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* send = session.Add("_Send", {session.Value(Tensor::Scalar<int32_t>(3))},
                           EdgeAttrs("t"));
  Node* recv = session.Add("_Recv", {}, RecvAttrs("t", DType::kString));
  SLUICE_ASSERT_OK(session.Run(send));
  EXPECT_THAT(
      session.Run(recv),
      StatusIs(absl::StatusCode::kInternal,
               testing::AllOf(HasSubstr("int32 for output 0 of"),
                              HasSubstr("which is declared as string"))));
}

TEST(SendRecv, AnAbortEndsTheWait) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  Node* recv = session.Add("_Recv", {}, RecvAttrs("a", DType::kFloat));
  auto run = session.Start(recv);
  session.rendezvous().Abort(absl::UnavailableError("gone"));
  EXPECT_THAT(run->Wait(), StatusIs(absl::StatusCode::kUnavailable, "gone"));
  EXPECT_THAT(session.Run(recv),
              StatusIs(absl::StatusCode::kUnavailable, "gone"));
}

TEST(SendRecv, DoNotSendBorrowedMemory) {
  const auto device = MakeTestDevice();
  OpSession session(*device);
  float memory[1] = {1};
  Node* send = session.Add(
      "_Send",
      {session.Value(Tensor::FromBuffer(
          DType::kFloat, {1}, Buffer::Borrow(memory, sizeof(memory), [] {})))},
      EdgeAttrs("b"));
  Node* recv = session.Add("_Recv", {}, RecvAttrs("b", DType::kFloat));
  SLUICE_ASSERT_OK(session.Run(send));
  memory[0] = 2;
  ExpectClose(session.Output0(recv), Tensor::Vector<float>({1}));
}

}  // namespace
}  // namespace sluice
