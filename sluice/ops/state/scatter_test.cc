#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// A table of three rows, ref or resource, to scatter into.
class ScatterTable {
 public:
  explicit ScatterTable(
      bool resource,
      const Tensor& initial = Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}))
      : device_(MakeTestDevice()), session_(*device_), resource_(resource) {
    const AttrMap attrs{{"dtype", initial.dtype()}, {"shape", initial.shape()}};
    const Output value = session_.Value(initial);
    if (resource) {
      table_ = session_.Add("VarHandleOp", {}, attrs, "table");
      read_ = session_.Add("ReadVariableOp", {table_->output(0)},
                           {{"dtype", initial.dtype()}});
      EXPECT_TRUE(
          session_
              .Run(session_.Add("AssignVariableOp", {table_->output(0), value}))
              .ok());
    } else {
      table_ = read_ = session_.Add("VariableV2", {}, attrs, "table");
      EXPECT_TRUE(
          session_.Run(session_.Add("Assign", {table_->output(0), value}))
              .ok());
    }
  }
  absl::Status Scatter(std::string_view op, Tensor indices, Tensor updates) {
    const DType dtype = updates.dtype();
    Node* node = session_.Add(
        StrCat(resource_ ? "Resource" : "", "Scatter", op),
        {table_->output(0), session_.Value(std::move(indices)),
         session_.Value(std::move(updates))},
        resource_ && !op.starts_with("Nd") ? AttrMap{{"dtype", dtype}}
                                           : AttrMap{});
    return session_.Run(node);
  }
  Tensor Value() { return session_.Output0(read_); }
  OpSession& session() { return session_; }
  Output table() const { return table_->output(0); }

 private:
  std::unique_ptr<Device> device_;
  OpSession session_;
  bool resource_;
  Node* table_;
  Node* read_;
};

class ScatterTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(RefAndResource, ScatterTest, testing::Bool());

TEST_P(ScatterTest, CombinesRows) {
  const Tensor indices = Tensor::Vector<int32_t>({2, 0});
  const Tensor updates = Tensor::Of<float>({2, 2}, {2, 4, 5, 1});
  const auto result = [&](std::string_view op) {
    ScatterTable table(GetParam());
    SLUICE_EXPECT_OK(table.Scatter(op, indices, updates));
    return table.Value();
  };
  const auto rows = [](std::initializer_list<float> values) {
    return Tensor::Of<float>({3, 2}, values);
  };
  ExpectClose(result("Update"), rows({5, 1, 3, 4, 2, 4}));
  ExpectClose(result("Add"), rows({6, 3, 3, 4, 7, 10}));
  ExpectClose(result("Sub"), rows({-4, 1, 3, 4, 3, 2}));
  ExpectClose(result("Mul"), rows({5, 2, 3, 4, 10, 24}));
  ExpectClose(result("Div"), rows({0.2f, 2, 3, 4, 2.5f, 1.5f}));
  ExpectClose(result("Min"), rows({1, 1, 3, 4, 2, 4}));
  ExpectClose(result("Max"), rows({5, 2, 3, 4, 5, 6}));
}

TEST_P(ScatterTest, RepeatedIndicesAddUp) {
  ScatterTable table(GetParam());
  SLUICE_ASSERT_OK(table.Scatter("Add", Tensor::Vector<int64_t>({1, 1}),
                                 Tensor::Of<float>({2, 2}, {1, 1, 10, 10})));
  ExpectClose(table.Value(), Tensor::Of<float>({3, 2}, {1, 2, 14, 15, 5, 6}));
}

TEST_P(ScatterTest, TakesAScalarForAllElements) {
  ScatterTable table(GetParam());
  SLUICE_ASSERT_OK(table.Scatter("Add", Tensor::Scalar<int32_t>(1),
                                 Tensor::Scalar<float>(1)));
  SLUICE_ASSERT_OK(table.Scatter("Update", Tensor::Scalar<int32_t>(2),
                                 Tensor::Scalar<float>(0)));
  ExpectClose(table.Value(), Tensor::Of<float>({3, 2}, {1, 2, 4, 5, 0, 0}));
}

TEST_P(ScatterTest, ABadIndexChangesNothing) {
  ScatterTable table(GetParam());
  EXPECT_THAT(table.Scatter("Add", Tensor::Of<int32_t>({2, 1}, {0, 5}),
                            Tensor::Of<float>({2, 1, 2}, {1, 1, 1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "indices[1,0] = 5 is not in [0, 3)"));
  EXPECT_THAT(table.Scatter("Add", Tensor::Vector<int32_t>({-1}),
                            Tensor::Of<float>({1, 2}, {1, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "indices[0] = -1 is not in [0, 3)"));
  ExpectClose(table.Value(), Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
}

TEST_P(ScatterTest, RefusesUpdatesThatDoNotFit) {
  ScatterTable table(GetParam());
  EXPECT_THAT(
      table.Scatter("Add", Tensor::Vector<int32_t>({0}),
                    Tensor::Of<float>({2, 2}, {1, 1, 1, 1})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "Must have updates.shape = indices.shape + params.shape[1:] or "
               "updates.shape = [], got updates.shape [2,2], indices.shape "
               "[1], params.shape [3,2]"));
}

// Integers, so that sums are exact.
TEST_P(ScatterTest, RepeatedIndicesTakeEffectInOrderInLongListsToo) {
  constexpr int64_t kRows = 1000, kRow = 16, kUpdates = 20000;
  ScatterTable table(GetParam(), Tensor(DType::kInt64, {kRows, kRow}));
  Tensor indices(DType::kInt64, {kUpdates});
  Tensor updates(DType::kInt64, {kUpdates, kRow});
  std::vector<int64_t> sums(kRows, 0), last(kRows, 0);
  for (int64_t i = 0; i < kUpdates; ++i) {
    const int64_t row = i * 7919 % kRows / (1 + i % 3);
    indices.mutable_data<int64_t>()[i] = row;
    for (int64_t j = 0; j < kRow; ++j) {
      updates.mutable_data<int64_t>()[i * kRow + j] = i + j;
    }
    sums[row] += i;
    last[row] = i;
  }
  Tensor zeros(DType::kInt64, {kRows, kRow});
  std::fill_n(zeros.mutable_data<int64_t>().data(), zeros.size(), 0);
  Tensor all(DType::kInt64, {kRows});
  for (int64_t i = 0; i < kRows; ++i) all.mutable_data<int64_t>()[i] = i;
  SLUICE_ASSERT_OK(table.Scatter("Update", all, zeros));
  SLUICE_ASSERT_OK(table.Scatter("Add", indices, updates));
  const Tensor added = table.Value();
  SLUICE_ASSERT_OK(table.Scatter("Update", indices, updates));
  const Tensor replaced = table.Value();
  for (int64_t row = 0; row < kRows; ++row) {
    ASSERT_EQ(added.data<int64_t>()[row * kRow], sums[row]) << row;
    ASSERT_EQ(replaced.data<int64_t>()[row * kRow], last[row]) << row;
  }
}

TEST_P(ScatterTest, CombinesSlicesNamedByCoordinates) {
  const auto result = [&](std::string_view op) {
    ScatterTable table(GetParam());
    SLUICE_EXPECT_OK(table.Scatter(op,
                                   Tensor::Of<int32_t>({2, 2}, {0, 1, 2, 0}),
                                   Tensor::Vector<float>({10, 20})));
    return table.Value();
  };
  ExpectClose(result("NdUpdate"),
              Tensor::Of<float>({3, 2}, {1, 10, 3, 4, 20, 6}));
  ExpectClose(result("NdAdd"), Tensor::Of<float>({3, 2}, {1, 12, 3, 4, 25, 6}));
  ExpectClose(result("NdSub"),
              Tensor::Of<float>({3, 2}, {1, -8, 3, 4, -15, 6}));
}

TEST_P(ScatterTest, RefusesCoordinatesThatAreNotThere) {
  ScatterTable table(GetParam());
  EXPECT_THAT(table.Scatter("NdUpdate", Tensor::Of<int32_t>({1, 2}, {0, 2}),
                            Tensor::Vector<float>({10})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not index into param shape [3,2]")));
  EXPECT_THAT(table.Scatter("NdUpdate", Tensor::Of<int32_t>({1, 1}, {0}),
                            Tensor::Vector<float>({10})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Must have updates.shape = ")));
  ExpectClose(table.Value(), Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
}

TEST_P(ScatterTest, UpdatesStrings) {
  ScatterTable table(GetParam(), Tensor::Vector<std::string>({"a", "b"}));
  SLUICE_ASSERT_OK(table.Scatter("Update", Tensor::Vector<int32_t>({1}),
                                 Tensor::Vector<std::string>({"new"})));
  ExpectClose(table.Value(), Tensor::Vector<std::string>({"a", "new"}));
}

TEST_P(ScatterTest, SlicesAreAssigned) {
  ScatterTable table(GetParam());
  OpSession& session = table.session();
  const auto ints = [&](std::initializer_list<int32_t> values) {
    return session.Value(Tensor::Vector<int32_t>(values));
  };
  // table[::-2, 1] = value
  const auto assign = [&](Tensor value) {
    return session.Run(session.Add(
        GetParam() ? "ResourceStridedSliceAssign" : "StridedSliceAssign",
        {table.table(), ints({0, 1}), ints({0, 2}), ints({-2, 1}),
         session.Value(std::move(value))},
        {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}}));
  };
  SLUICE_ASSERT_OK(assign(Tensor::Vector<float>({10, 20})));
  ExpectClose(table.Value(), Tensor::Of<float>({3, 2}, {1, 20, 3, 4, 5, 10}));
  EXPECT_THAT(assign(Tensor::Vector<float>({1, 2, 3})),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("sliced l-value shape [2] does not match "
                                 "r-value shape [3]")));
}

TEST(ScatterShape, ChecksWhatIsKnown) {
  ScatterTable table(false);
  OpSession& session = table.session();
  const Output indices =
      session.Value(Tensor::Vector<int32_t>({0}), /*known_shape=*/true);
  const Output updates = session.Value(Tensor::Of<float>({1, 3}, {1, 1, 1}),
                                       /*known_shape=*/true);
  EXPECT_THAT(
      session.TryAdd("ScatterAdd", {table.table(), indices, updates}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("Dimension 1 in both shapes must be equal, but are 3 "
                         "and 2")));
}

TEST(ResourceGather, PicksRowsOfTheVariable) {
  ScatterTable table(true);
  OpSession& session = table.session();
  Node* gather = session.Add(
      "ResourceGather",
      {table.table(), session.Value(Tensor::Of<int64_t>({1, 2}, {2, 0}))},
      {{"dtype", DType::kFloat}});
  ExpectClose(session.Output0(gather),
              Tensor::Of<float>({1, 2, 2}, {5, 6, 1, 2}));
}

TEST(ResourceGather, PicksWithinBatches) {
  ScatterTable table(true);
  OpSession& session = table.session();
  Node* gather = session.Add(
      "ResourceGather",
      {table.table(), session.Value(Tensor::Of<int32_t>({3, 1}, {1, 0, 1}))},
      {{"dtype", DType::kFloat}, {"batch_dims", 1}});
  ExpectClose(session.Output0(gather), Tensor::Of<float>({3, 1}, {2, 3, 6}));
}

TEST(ResourceGather, NamesABadIndex) {
  ScatterTable table(true);
  OpSession& session = table.session();
  Node* gather = session.Add(
      "ResourceGather",
      {table.table(), session.Value(Tensor::Vector<int32_t>({1, 3}))},
      {{"dtype", DType::kFloat}});
  EXPECT_THAT(session.Run(gather), StatusIs(absl::StatusCode::kInvalidArgument,
                                            "indices[1] = 3 is not in [0, 3)"));
}

TEST(ResourceGather, ShapeIsIndicesThenRows) {
  ScatterTable table(true);
  OpSession& session = table.session();
  const Output known = session.Value(Tensor::Of<int32_t>({4, 1}, {0, 0, 0, 0}),
                                     /*known_shape=*/true);
  const Output unknown = session.Value(Tensor::Scalar<int32_t>(0));
  const auto shape = [&](Output indices) {
    return session
        .Add("ResourceGather", {table.table(), indices},
             {{"dtype", DType::kFloat}})
        ->output_shape(0)
        .DebugString();
  };
  EXPECT_EQ(shape(known), "[4,1,2]");
  EXPECT_EQ(shape(unknown), "<unknown>");
}

}  // namespace
}  // namespace sluice
