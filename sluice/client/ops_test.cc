// The generated functions of the ops (client/ops.h).
#include "sluice/client/ops.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sluice/client/math.h"
#include "sluice/client/testing/graph_fixture.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using OpFunctions = GraphFixture;

TEST_F(OpFunctions, ExistForEveryRegisteredOp) {
  // build/bin/client_test -> build/gen.
  const std::filesystem::path build =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "..";
  std::string text;
  for (const auto& file :
       std::filesystem::directory_iterator(build / "gen/sluice/client/ops")) {
    if (file.path().extension() != ".h") continue;
    std::ifstream in(file.path());
    std::stringstream all;
    all << in.rdbuf();
    text += all.str();
  }
  int count = 0;
  for (const std::string& name : OpRegistry::Global().Names()) {
    const OpInfo* op = OpRegistry::Global().Find(name);
    // Ops of the runtime, and those that tests register.
    if (name.starts_with('_') ||
        std::string_view(op->file).find("sluice/ops/") == std::string::npos) {
      continue;
    }
    EXPECT_NE(text.find(" " + name + "(const Scope& scope"), std::string::npos)
        << name;
    ++count;
  }
  EXPECT_GT(count, 300);
}

TEST_F(OpFunctions, TakeOptionalAttrsByName) {
  const Output a = ops::Const(root_, {{1.0f, 2.0f}, {3.0f, 4.0f}});
  const Output b = ops::Const(root_, {{1.0f}, {10.0f}});
  EXPECT_THAT(Values<float>(ops::MatMul(root_, a, b)), ElementsAre(21, 43));
  EXPECT_THAT(Values<float>(ops::MatMul(root_, a, b, {.transpose_a = true})),
              ElementsAre(31, 42));
}

TEST_F(OpFunctions, TakeRequiredAttrsAsArguments) {
  const Output x = ops::Cast(root_, {1.75f, -2.5f}, DType::kInt32);
  EXPECT_THAT(Values<int32_t>(x), ElementsAre(1, -2));
  const Output p = ops::Placeholder(root_, DType::kFloat, {.shape = {-1, 3}});
  EXPECT_EQ(ShapeOf(p).DebugString(), "[?,3]");
}

TEST_F(OpFunctions, TakeListsOfInputs) {
  const Output a = ops::Const(root_, {1.0f, 2.0f});
  EXPECT_THAT(Values<float>(ops::ConcatV2(root_, {a, a, {7.0f}}, 0)),
              ElementsAre(1, 2, 1, 2, 7));
  const std::vector<Output> parts = {a, a, a};
  EXPECT_THAT(Values<float>(ops::AddN(root_, parts)), ElementsAre(3, 6));
}

TEST_F(OpFunctions, GiveListsOfOutputs) {
  const std::vector<Output> halves =
      ops::Split(root_, 0, {1, 2, 3, 4}, /*num_split=*/2);
  ASSERT_EQ(halves.size(), 2);
  EXPECT_THAT(Values<int32_t>(halves[1]), ElementsAre(3, 4));
}

TEST_F(OpFunctions, GiveSeveralOutputsByName) {
  const ops::TopKV2Outputs top = ops::TopKV2(root_, {3.0f, 9.0f, 5.0f}, 2);
  EXPECT_THAT(Values<float>(top.values), ElementsAre(9, 5));
  EXPECT_THAT(Values<int32_t>(top.indices), ElementsAre(1, 2));
}

TEST_F(OpFunctions, GiveANodeWhereThereIsNoOutput) {
  Node* nothing = ops::NoOp(root_.Named("nothing"));
  ASSERT_NE(nothing, nullptr);
  EXPECT_EQ(nothing->name(), "nothing");
}

TEST_F(OpFunctions, ReportThroughTheSessionWhatWentWrongAndWhere) {
  const Output a = ops::Const(root_, {{1.0f, 2.0f}});
  const Output wrong =
      ops::MatMul(root_.NameScope("layer").Named("product"), a, a);
  EXPECT_FALSE(wrong);
  // Whatever is built on it fails in silence: the first error counts.
  const Output more = ops::Relu(root_, wrong);
  const absl::Status status = Eval(more).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("'layer/product' (op: 'MatMul')"));
  EXPECT_EQ(root_.status(), status);
}

TEST_F(OpFunctions, StandUnderTheDeviceAndNameOfTheirScope) {
  const Scope ps = root_.NameScope("model").Device("/job:ps/task:1");
  const Output x = ops::Const(ps, 1.0f);
  EXPECT_EQ(x.node->name(), "model/Const");
  EXPECT_EQ(x.node->device(), "/job:ps/task:1");
}

TEST_F(OpFunctions, ReduceOverAllOrSomeDimensions) {
  const Output x = ops::Const(root_, {{1.0f, 2.0f}, {3.0f, 4.0f}});
  EXPECT_EQ(Scalar<float>(ops::ReduceSum(root_, x)), 10);
  EXPECT_EQ(Scalar<float>(ops::ReduceMean(root_, x)), 2.5);
  EXPECT_THAT(Values<float>(ops::ReduceMax(root_, x, {.axis = {{-1}}})),
              ElementsAre(2, 4));
  const Output kept =
      ops::ReduceProd(root_, x, {.axis = {{0}}, .keepdims = true});
  EXPECT_EQ(ShapeOf(kept).DebugString(), "[1,2]");
  const Output unknown = ops::Placeholder(root_, DType::kFloat);
  EXPECT_EQ(Scalar<float>(ops::ReduceMin(root_, unknown),
                          {{unknown, Tensor::Vector<float>({4, 2, 8})}}),
            2);
}

TEST_F(OpFunctions, MakeTensorsOfOneValueOrAtRandom) {
  EXPECT_THAT(Values<float>(ops::Zeros(root_, {2})), ElementsAre(0, 0));
  EXPECT_THAT(Values<int64_t>(ops::Ones(root_, {1}, DType::kInt64)),
              ElementsAre(1));
  const Output noise =
      ops::RandomNormal(root_, {1000}, {.mean = 5, .stddev = 0.5, .seed = 1});
  EXPECT_EQ(noise.node->name(), "random_normal");
  EXPECT_NEAR(Scalar<float>(ops::ReduceMean(root_, noise)), 5, 0.1);
}

}  // namespace
}  // namespace sluice
