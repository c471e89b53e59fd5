#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

class SessionTensorsTest : public ::testing::Test {
 protected:
  SessionTensorsTest()
      : device_(MakeTestDevice()),
        session_(std::make_unique<OpSession>(*device_)) {}

  std::string Keep(Tensor value, const char* name) {
    return session_
        ->Output0(session_->Add("GetSessionHandle",
                                {session_->Value(std::move(value))}, {}, name))
        .scalar<std::string>();
  }
  absl::StatusOr<std::vector<Tensor>> Get(const std::string& handle,
                                          DType type) {
    return session_->Outputs(session_->Add(
        "GetSessionTensor", {session_->Value(Tensor::Scalar(handle))},
        {{"dtype", type}}));
  }
  absl::Status Delete(const std::string& handle) {
    return session_->Run(session_->Add(
        "DeleteSessionTensor", {session_->Value(Tensor::Scalar(handle))}));
  }

  const std::unique_ptr<Device> device_;
  std::unique_ptr<OpSession> session_;
};

TEST_F(SessionTensorsTest, StayUntilTheyAreDeleted) {
  const std::string handle = Keep(Tensor::Vector<float>({1, 2}), "kept");
  EXPECT_EQ(handle, StrCat("kept;0;", device_->name()));
  const auto found = Get(handle, DType::kFloat);
  SLUICE_ASSERT_OK(found.status());
  ExpectClose((*found)[0], Tensor::Vector<float>({1, 2}));
  SLUICE_ASSERT_OK(Delete(handle));
  EXPECT_THAT(Get(handle, DType::kFloat).status(),
              StatusIs(Code::kInvalidArgument,
                       StrCat("The tensor with handle '", handle,
                              "' is not in the session store.")));
  EXPECT_THAT(Delete(handle),
              StatusIs(Code::kInvalidArgument,
                       StrCat("Failed to delete a tensor with handle '", handle,
                              "' in the session store.")));
}

TEST_F(SessionTensorsTest, AreOfTheTypeTheyWereKeptWith) {
  const std::string handle = Keep(Tensor::Scalar(1.0f), "kept");
  EXPECT_THAT(Get(handle, DType::kInt32).status(),
              StatusIs(Code::kInvalidArgument, HasSubstr("is float, not")));
}

TEST_F(SessionTensorsTest, GoWithTheirSession) {
  const std::string mine = Keep(Tensor::Scalar(1.0f), "kept");
  OpSession other(*device_);
  const std::string others =
      other
          .Output0(other.Add("GetSessionHandle",
                             {other.Value(Tensor::Scalar(2.0f))}, {}, "kept"))
          .scalar<std::string>();
  session_ = std::make_unique<OpSession>(*device_);
  EXPECT_THAT(Get(mine, DType::kFloat).status(),
              StatusIs(Code::kInvalidArgument, HasSubstr("is not in")));
  SLUICE_EXPECT_OK(Get(others, DType::kFloat).status());
}

}  // namespace
}  // namespace sluice
