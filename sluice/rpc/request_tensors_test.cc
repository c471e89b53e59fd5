#include "sluice/rpc/request_tensors.h"

#include <gmock/gmock.h>

#include "sluice/rpc/testing/services_fixture.h"

namespace sluice {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

// One value, so often.
pb::TensorProto Repeated(int64_t size) {
  return Parsed<pb::TensorProto>(
      StrCat("dtype: DT_FLOAT float_val: 3 tensor_shape { dim { size: ", size,
             " } }"));
}

TEST(RequestTensors, TogetherStayWithinTheLimitOfAMessage) {
  Limits limits;
  limits.message_bytes = 1000;
  RequestTensors tensors(limits);
  EXPECT_EQ(tensors.Read(Repeated(150))->size(), 150);
  EXPECT_THAT(tensors.Read(Repeated(150)).status(),
              StatusIs(StatusCode::kResourceExhausted,
                       HasSubstr("tensors of 1200 bytes is over the limit "
                                 "message_bytes=1000")));
}

// What they take stands in the request, whose length is checked elsewhere.
TEST(RequestTensors, NumbersInContentsAreNotCounted) {
  Limits limits;
  limits.message_bytes = 1000;
  RequestTensors tensors(limits);
  pb::TensorProto proto;
  TensorToProto(*Tensor::Zeros(DType::kFloat, {1000}), &proto);
  SLUICE_EXPECT_OK(tensors.Read(std::move(proto)).status());
}

// There a byte stands for an empty one, which takes 32 bytes or more in memory.
TEST(RequestTensors, StringsAndHandlesInContentsAreCounted) {
  Limits limits;
  limits.message_bytes = 10'000;
  const auto empty = [](pb::DataType type, int count) {
    pb::TensorProto proto;
    proto.set_dtype(type);
    proto.mutable_tensor_shape()->add_dim()->set_size(count);
    proto.set_tensor_content(std::string(count, '\0'));
    return proto;
  };
  for (const pb::DataType type : {pb::DT_STRING, pb::DT_RESOURCE}) {
    RequestTensors tensors(limits);
    SLUICE_EXPECT_OK(tensors.Read(empty(type, 20)).status());
    EXPECT_THAT(tensors.Read(empty(type, 1000)).status(),
                StatusIs(StatusCode::kResourceExhausted,
                         HasSubstr("limit message_bytes=10000")));
  }
}

// 2 GiB in a few bytes; no memory is taken for them.
TEST_F(ServicesTest, AFeedThatRepeatsIsHeldToTheLimitOfAMessage) {
  SLUICE_ASSERT_OK(Open(kGraph));
  const std::string value =
      "dtype: DT_FLOAT float_val: 3 tensor_shape { dim { size: 536870912 } }";
  const auto refused = StatusIs(StatusCode::kResourceExhausted,
                                HasSubstr("limit message_bytes=2147483647"));
  EXPECT_THAT(
      Run(StrCat("feed { name: 'x:0' tensor {", value, "} } fetch: 'y:0'")),
      refused);
  auto make =
      Parsed<pb::MakeCallableRequest>("options { feed: 'x:0' fetch: 'y:0' }");
  make.set_session_handle(handle_);
  pb::MakeCallableResponse made;
  SLUICE_ASSERT_OK(Call(paths::kMakeCallable, make, &made));
  auto run = Parsed<pb::RunCallableRequest>(StrCat("feed {", value, "}"));
  run.set_session_handle(handle_);
  run.set_handle(made.handle());
  EXPECT_THAT(Call<pb::RunCallableResponse>(paths::kRunCallable, run), refused);
}

}  // namespace
}  // namespace sluice
