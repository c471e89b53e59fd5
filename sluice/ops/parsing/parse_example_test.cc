#include <map>

#include "sluice/base/file.h"
#include "sluice/io/record_file.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/example.pb.h"

namespace sluice {
namespace {
namespace parse_example_test {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

std::vector<std::string> RecordsOf(const std::string& path) {
  std::vector<std::string> records;
  auto reader = RecordReader::Open(RealFileSystem(), path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::string record;
  while (reader.ok() && *(*reader)->Read(&record)) records.push_back(record);
  return records;
}

Tensor Strings(const std::vector<std::string>& strings) {
  return Tensor::Of<std::string>({static_cast<int64_t>(strings.size())},
                                 std::span<const std::string>(strings));
}

// ParseExample with features given one by one.
class Parse {
 public:
  explicit Parse(std::vector<std::string> serialized)
      : serialized_(std::move(serialized)) {}
  Parse& Sparse(const std::string& key, DType dtype) {
    sparse_.push_back(key);
    sparse_types_.push_back(dtype);
    return *this;
  }
  Parse& Dense(const std::string& key, DType dtype, PartialShape shape,
               Tensor missing) {
    dense_.push_back(key);
    dense_types_.push_back(dtype);
    shapes_.push_back(std::move(shape));
    defaults_.push_back(std::move(missing));
    return *this;
  }
  absl::Status Run(const std::vector<std::string>& names = {}) {
    op_.AddInput(Strings(serialized_)).AddInput(Strings(names));
    for (const std::string& key : sparse_) op_.AddInput(Tensor::Scalar(key));
    for (const std::string& key : dense_) op_.AddInput(Tensor::Scalar(key));
    for (const Tensor& value : defaults_) op_.AddInput(value);
    op_.Attr("Nsparse", static_cast<int64_t>(sparse_.size()));
    op_.Attr("Ndense", static_cast<int64_t>(dense_.size()));
    op_.Attr("sparse_types", sparse_types_).Attr("Tdense", dense_types_);
    op_.Attr("dense_shapes", shapes_);
    return op_.Run();
  }
  // Of sparse feature i: indices, values and shape.
  const Tensor& indices(int i) const { return op_.output(i); }
  const Tensor& values(int i) const {
    return op_.output(static_cast<int>(sparse_.size()) + i);
  }
  const Tensor& shape(int i) const {
    return op_.output(2 * static_cast<int>(sparse_.size()) + i);
  }
  const Tensor& dense(int i) const {
    return op_.output(3 * static_cast<int>(sparse_.size()) + i);
  }

 private:
  OpTest op_{"ParseExample"};
  std::vector<std::string> serialized_, sparse_, dense_;
  std::vector<DType> sparse_types_, dense_types_;
  std::vector<PartialShape> shapes_;
  std::vector<Tensor> defaults_;
};

Tensor None(DType dtype) { return Tensor(dtype, Shape({0})); }

TEST(ParseExample, ReadsTheExamplesOfTensorFlow) {
  std::vector<std::string> records =
      RecordsOf("tests/golden/events/examples.tfrecord");
  ASSERT_EQ(records.size(), 3u);
  records.resize(2);
  Parse p(records);
  p.Sparse("b", DType::kString)
      .Dense("d", DType::kFloat, {1}, Tensor::Vector<float>({9}))
      .Dense("f", DType::kFloat, {2}, None(DType::kFloat))
      .Dense("i", DType::kInt64, PartialShape::Scalar(), None(DType::kInt64))
      .Dense("v", DType::kInt64, {-1}, Tensor::Scalar<int64_t>(-1));
  SLUICE_ASSERT_OK(p.Run());
  ExpectClose(p.indices(0), Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 1, 1, 0}));
  ExpectClose(p.values(0), Tensor::Vector<std::string>(
                               {"ab", "", std::string("\0\xff", 2)}));
  ExpectClose(p.shape(0), Tensor::Vector<int64_t>({2, 2}));
  ExpectClose(p.dense(0), Tensor::Of<float>({2, 1}, {9, 9}));
  ExpectClose(p.dense(1),
              Tensor::Of<float>({2, 2}, {1.5, -2.5, 0, 1.00000002e20f}));
  ExpectClose(p.dense(2), Tensor::Vector<int64_t>({3, -1099511627776}));
  ExpectClose(p.dense(3), Tensor::Of<int64_t>({2, 3}, {1, 2, 3, -1, -1, -1}));
}

TEST(ParseExample, SplitsLargeBatchesOverThreadsInOrder) {
  std::vector<std::string> records;
  for (int64_t i = 0; i < 5000; ++i) {
    pb::Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    features["id"].mutable_int64_list()->add_value(i);
    for (int64_t k = 0; k < i % 3; ++k) {
      features["many"].mutable_int64_list()->add_value(k);
    }
    features["padding"].mutable_bytes_list()->add_value(std::string(100, 'x'));
    records.push_back(example.SerializeAsString());
  }
  Parse p(records);
  p.Sparse("many", DType::kInt64)
      .Dense("id", DType::kInt64, PartialShape::Scalar(), None(DType::kInt64));
  SLUICE_ASSERT_OK(p.Run());
  for (int64_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(p.dense(0).data<int64_t>()[i], i);
  }
  ASSERT_EQ(p.values(0).size(), 4999);
  EXPECT_EQ(p.indices(0).data<int64_t>()[2 * 4998], 4999);
  // The first error is the one reported.
  records[4000] = records[3] = "\x0a\xff";
  Parse bad(records);
  bad.Sparse("many", DType::kInt64);
  EXPECT_THAT(bad.Run(),
              StatusIs(Code::kInvalidArgument,
                       "Could not parse example input, value: '\\n\\xff'"));
}

std::string OneFeature(const std::string& key,
                       const std::vector<float>& floats) {
  pb::Example example;
  auto& list = *(*example.mutable_features()->mutable_feature())[key]
                    .mutable_float_list();
  for (float value : floats) list.add_value(value);
  return example.SerializeAsString();
}

TEST(ParseExample, NamesTheExampleAndTheFeatureOfAnError) {
  Parse missing({OneFeature("x", {1}), ""});
  missing.Dense("x", DType::kFloat, {1}, None(DType::kFloat));
  EXPECT_THAT(missing.Run({"first", "second"}),
              StatusIs(Code::kInvalidArgument,
                       "Name: second, Feature: x (data type: float) is "
                       "required but could not be found."));
  Parse count({OneFeature("x", {1, 2})});
  count.Dense("x", DType::kFloat, {3}, None(DType::kFloat));
  EXPECT_THAT(count.Run(),
              StatusIs(Code::kInvalidArgument,
                       "Name: <unknown>, Key: x, Index: 0.  Number of float "
                       "values != expected.  Values size: 2 but output shape: "
                       "[3]"));
  Parse type({OneFeature("x", {1})});
  type.Dense("x", DType::kInt64, {1}, None(DType::kInt64));
  EXPECT_THAT(type.Run(),
              StatusIs(Code::kInvalidArgument,
                       "Name: <unknown>, Key: x, Index: 0.  Data types don't "
                       "match. Data type: float but expected type: int64"));
  Parse sparse({OneFeature("x", {1})});
  sparse.Sparse("x", DType::kString);
  EXPECT_THAT(sparse.Run(),
              StatusIs(Code::kInvalidArgument,
                       "Name: <unknown>, Key: x, Index: 0.  Data types don't "
                       "match. Expected type: string, Actual type: float"));
  Parse stride({OneFeature("x", {1, 2, 3})});
  stride.Dense("x", DType::kFloat, {-1, 2}, Tensor::Scalar<float>(0));
  EXPECT_THAT(stride.Run(),
              StatusIs(Code::kInvalidArgument,
                       HasSubstr("is not a multiple of stride length. Saw 3 "
                                 "values but output shape is: [?,2]")));
  Parse names({OneFeature("x", {1})});
  names.Sparse("x", DType::kFloat);
  EXPECT_THAT(names.Run({"a", "b"}),
              StatusIs(Code::kInvalidArgument,
                       "Expected len(names) == len(serialized), but got: 2 "
                       "vs. 1"));
}

TEST(ParseExample, RefusesDefaultsThatDoNotFit) {
  Parse shape({""});
  shape.Dense("x", DType::kFloat, {2}, Tensor::Vector<float>({1, 2, 3}));
  EXPECT_THAT(shape.Run(), StatusIs(Code::kInvalidArgument,
                                    HasSubstr("is not compatible with")));
  Parse padding({""});
  padding.Dense("x", DType::kFloat, {-1}, Tensor::Vector<float>({1, 2}));
  EXPECT_THAT(padding.Run(),
              StatusIs(Code::kInvalidArgument,
                       HasSubstr("must contain a single element")));
  Parse unknown({""});
  unknown.Dense("x", DType::kFloat, {2, -1}, None(DType::kFloat));
  EXPECT_THAT(unknown.Run(),
              StatusIs(Code::kInvalidArgument, HasSubstr("must be known")));
}

TEST(ParseExample, TakesTheLastOfSeveralValuesAndSkipsUnknownFields) {
  const std::string twice = OneFeature("x", {1}) + OneFeature("x", {2});
  // Field 9 of the message is nobody's.
  Parse p({twice + "\x4a\x03"
                   "abc"});
  p.Dense("x", DType::kFloat, {1}, None(DType::kFloat));
  SLUICE_ASSERT_OK(p.Run());
  ExpectClose(p.dense(0), Tensor::Of<float>({1, 1}, {2}));
}

TEST(ParseSingleExample, HasNoDimensionOfABatch) {
  const std::vector<std::string> records =
      RecordsOf("tests/golden/events/examples.tfrecord");
  OpTest op("ParseSingleExample");
  op.AddInput(Tensor::Scalar(records[0])).AddInput(None(DType::kFloat));
  op.Attr("num_sparse", int64_t{1})
      .Attr("sparse_keys", std::vector<std::string>{"v"})
      .Attr("sparse_types", std::vector<DType>{DType::kInt64})
      .Attr("dense_keys", std::vector<std::string>{"f"})
      .Attr("Tdense", std::vector<DType>{DType::kFloat})
      .Attr("dense_shapes", std::vector<PartialShape>{{2}});
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Of<int64_t>({3, 1}, {0, 1, 2}));
  ExpectClose(op.output(1), Tensor::Vector<int64_t>({1, 2, 3}));
  ExpectClose(op.output(2), Tensor::Vector<int64_t>({3}));
  ExpectClose(op.output(3), Tensor::Vector<float>({1.5, -2.5}));
}

TEST(ParseSingleExample, RefusesGarbage) {
  for (const char* bytes :
       {"garbage\xff", "\x0a", "\x0a\x05\x0a\x03\x0a\x09"}) {
    OpTest op("ParseSingleExample");
    op.AddInput(Tensor::Scalar<std::string>(bytes))
        .AddInput(None(DType::kFloat));
    op.Attr("num_sparse", int64_t{0})
        .Attr("sparse_keys", std::vector<std::string>{})
        .Attr("sparse_types", std::vector<DType>{})
        .Attr("dense_keys", std::vector<std::string>{"x"})
        .Attr("Tdense", std::vector<DType>{DType::kFloat})
        .Attr("dense_shapes", std::vector<PartialShape>{{1}});
    EXPECT_THAT(op.Run(), StatusIs(Code::kInvalidArgument,
                                   HasSubstr("Could not parse example")));
  }
}

// The sequences of TensorFlow, parsed as one op or the other.
void AddSequenceAttrs(OpTest& op) {
  op.Attr("Ncontext_dense", int64_t{1})
      .Attr("Nfeature_list_sparse", int64_t{1})
      .Attr("Nfeature_list_dense", int64_t{1})
      .Attr("Tcontext_dense", std::vector<DType>{DType::kInt64})
      .Attr("context_dense_shapes",
            std::vector<PartialShape>{PartialShape::Scalar()})
      .Attr("feature_list_sparse_types", std::vector<DType>{DType::kString})
      .Attr("feature_list_dense_types", std::vector<DType>{DType::kFloat})
      .Attr("feature_list_dense_shapes", std::vector<PartialShape>{{2}});
}

TEST(ParseSingleSequenceExample, ReadsTheSequencesOfTensorFlow) {
  const std::vector<std::string> records =
      RecordsOf("tests/golden/events/sequence_examples.tfrecord");
  ASSERT_EQ(records.size(), 2u);
  const auto run = [&](OpTest& op, const std::string& record,
                       const std::vector<std::string>& may_be_missing) {
    op.AddInput(Tensor::Scalar(record)).AddInput(Strings(may_be_missing));
    for (const char* key : {"id", "w", "t"}) {
      op.AddInput(Tensor::Scalar<std::string>(key));
    }
    op.AddInput(Tensor::Scalar<int64_t>(5));
    op.AddInput(Tensor::Scalar<std::string>("s"));
    AddSequenceAttrs(op);
    return op.Run();
  };
  OpTest op("ParseSingleSequenceExample");
  SLUICE_ASSERT_OK(run(op, records[0], {}));
  ExpectClose(op.output(0), Tensor::Scalar<int64_t>(7));
  ExpectClose(op.output(1), Tensor::Of<int64_t>({3, 2}, {0, 0, 1, 0, 1, 1}));
  ExpectClose(op.output(2), Tensor::Vector<std::string>({"a", "b", "c"}));
  ExpectClose(op.output(3), Tensor::Vector<int64_t>({3, 2}));
  ExpectClose(op.output(4), Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  OpTest missing("ParseSingleSequenceExample");
  EXPECT_THAT(
      run(missing, records[1], {}),
      StatusIs(Code::kInvalidArgument,
               "Name: s, Feature list 't' is required but could not be found. "
               " Did you mean to include it in "
               "feature_list_dense_missing_assumed_empty or "
               "feature_list_dense_defaults?"));
  OpTest empty("ParseSingleSequenceExample");
  SLUICE_ASSERT_OK(run(empty, records[1], {"t"}));
  ExpectClose(empty.output(0), Tensor::Scalar<int64_t>(5));
  EXPECT_EQ(empty.output(4).shape(), Shape({0, 2}));
}

TEST(ParseSequenceExample, PadsABatch) {
  const std::vector<std::string> records =
      RecordsOf("tests/golden/events/sequence_examples.tfrecord");
  OpTest op("ParseSequenceExample");
  op.AddInput(Strings(records)).AddInput(Strings({}));
  op.AddInput(Tensor::Scalar<int64_t>(5));
  AddSequenceAttrs(op);
  op.Attr("feature_list_dense_missing_assumed_empty",
          std::vector<std::string>{"t"})
      .Attr("context_sparse_keys", std::vector<std::string>{})
      .Attr("context_dense_keys", std::vector<std::string>{"id"})
      .Attr("feature_list_sparse_keys", std::vector<std::string>{"w"})
      .Attr("feature_list_dense_keys", std::vector<std::string>{"t"});
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Vector<int64_t>({7, 5}));
  ExpectClose(op.output(1),
              Tensor::Of<int64_t>({3, 3}, {0, 0, 0, 0, 1, 0, 0, 1, 1}));
  ExpectClose(op.output(3), Tensor::Vector<int64_t>({2, 3, 2}));
  ExpectClose(op.output(4), Tensor::Of<float>({2, 3, 2}, {1, 2, 3, 4, 5, 6, 0,
                                                          0, 0, 0, 0, 0}));
  ExpectClose(op.output(5), Tensor::Vector<int64_t>({3, 0}));
}

}  // namespace parse_example_test
}  // namespace
}  // namespace sluice
