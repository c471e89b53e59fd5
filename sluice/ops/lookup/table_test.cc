#include "sluice/ops/lookup/table.h"

#include "sluice/base/file.h"
#include "sluice/base/testing/temp_dir.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {
namespace table_test {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

// A table made by `op` and the ops on it.
class TableFixture {
 public:
  TableFixture(const std::string& op, DType key, DType value,
               AttrMap attrs = {}, const std::vector<Tensor>& inputs = {})
      : device_(MakeTestDevice()),
        session_(*device_),
        v2_(op.ends_with("V2") ? "V2" : "") {
    attrs.Set("key_dtype", key);
    attrs.Set("value_dtype", value);
    std::vector<Output> values;
    for (const Tensor& input : inputs) values.push_back(session_.Value(input));
    table_ = session_.Add(op, values, attrs, "table");
  }

  absl::Status Run(const std::string& op, const std::vector<Tensor>& inputs,
                   const AttrMap& attrs = {}) {
    const auto outputs = Call(op, inputs, attrs);
    return outputs.status();
  }
  absl::StatusOr<std::vector<Tensor>> Call(const std::string& op,
                                           const std::vector<Tensor>& inputs,
                                           const AttrMap& attrs = {}) {
    std::vector<Output> values = {table_->output(0)};
    for (const Tensor& input : inputs) values.push_back(session_.Value(input));
    SLUICE_ASSIGN_OR_RETURN(Node * node,
                            session_.TryAdd(op + v2_, values, attrs));
    return session_.Outputs(node);
  }
  absl::StatusOr<Tensor> Find(const Tensor& keys, const Tensor& missing) {
    SLUICE_ASSIGN_OR_RETURN(auto outputs,
                            Call("LookupTableFind", {keys, missing}));
    return outputs[0];
  }
  int64_t Size() { return (*Call("LookupTableSize", {}))[0].scalar<int64_t>(); }

 private:
  std::unique_ptr<Device> device_;
  OpSession session_;
  const std::string v2_;
  Node* table_;
};

Tensor Words(std::initializer_list<std::string> words) {
  return Tensor::Vector<std::string>(words);
}
Tensor Ints(std::initializer_list<int64_t> ints) {
  return Tensor::Vector<int64_t>(ints);
}

TEST(HashTable, IsUsableAfterItsInitializer) {
  for (const char* op : {"HashTable", "HashTableV2"}) {
    for (const char* init : {"InitializeTable", "LookupTableImport"}) {
      TableFixture t(op, DType::kString, DType::kInt64);
      EXPECT_THAT(
          t.Find(Words({"a"}), Tensor::Scalar<int64_t>(-1)).status(),
          StatusIs(Code::kFailedPrecondition, "Table not initialized."));
      EXPECT_EQ(t.Size(), 0);
      SLUICE_ASSERT_OK(t.Run(init, {Words({"a", "b"}), Ints({1, 2})}));
      EXPECT_EQ(t.Size(), 2);
      auto found = t.Find(Tensor::Of<std::string>({1, 3}, {"b", "x", "a"}),
                          Tensor::Scalar<int64_t>(-1));
      ASSERT_TRUE(found.ok()) << found.status();
      ExpectClose(*found, Tensor::Of<int64_t>({1, 3}, {2, -1, 1}));
      // Again with as many entries is fine, with others not.
      SLUICE_EXPECT_OK(t.Run(init, {Words({"a", "b"}), Ints({1, 2})}));
      EXPECT_THAT(
          t.Run(init, {Words({"a"}), Ints({1})}),
          StatusIs(Code::kFailedPrecondition,
                   "Table was already initialized with different data."));
      EXPECT_THAT(t.Run("LookupTableInsert", {Words({"c"}), Ints({1})}),
                  StatusIs(Code::kUnimplemented, HasSubstr("Insert not")));
    }
  }
}

TEST(HashTable, SaysWhichKeyHasTwoValuesAndStaysUninitialized) {
  TableFixture t("HashTableV2", DType::kString, DType::kInt64);
  EXPECT_THAT(t.Run("InitializeTable", {Words({"a", "a"}), Ints({1, 2})}),
              StatusIs(Code::kFailedPrecondition,
                       "HashTable has different value for same key. Key a has "
                       "1 and trying to add value 2"));
  SLUICE_ASSERT_OK(t.Run("InitializeTable", {Words({"a", "a"}), Ints({1, 1})}));
  EXPECT_EQ(t.Size(), 1);
}

TEST(HashTable, ChecksTypesAndShapes) {
  TableFixture t("HashTableV2", DType::kString, DType::kInt64);
  EXPECT_THAT(
      t.Find(Ints({1}), Tensor::Scalar<int64_t>(0)).status(),
      StatusIs(Code::kInvalidArgument,
               "Signature mismatch, have: resource, int64, int64->int64 "
               "expected: resource, string, int64->int64"));
  EXPECT_THAT(t.Find(Words({"a"}), Ints({0})).status(),
              StatusIs(Code::kInvalidArgument,
                       "Expected shape [] for default value, got [1]"));
  EXPECT_THAT(t.Run("InitializeTable", {Words({"a", "b"}), Ints({1})}),
              StatusIs(Code::kInvalidArgument,
                       "Expected shape [2] for value, got [1]"));
  TableFixture floats("HashTableV2", DType::kFloat, DType::kInt64);
  EXPECT_THAT(floats.Call("LookupTableSize", {}).status(),
              StatusIs(Code::kInvalidArgument,
                       HasSubstr("There are no tables from float to int64")));
}

TEST(MutableHashTable, InsertsRemovesExportsAndImports) {
  for (const DType key : {DType::kInt64, DType::kInt32}) {
    TableFixture t("MutableHashTableV2", key, DType::kString);
    const auto keys = [&](std::initializer_list<int64_t> values) {
      Tensor tensor(key, Shape({static_cast<int64_t>(values.size())}));
      int i = 0;
      for (int64_t value : values) {
        if (key == DType::kInt64) {
          tensor.mutable_data<int64_t>()[i++] = value;
        } else {
          tensor.mutable_data<int32_t>()[i++] = static_cast<int32_t>(value);
        }
      }
      return tensor;
    };
    SLUICE_ASSERT_OK(
        t.Run("LookupTableInsert", {keys({1, 2, 3}), Words({"a", "b", "c"})}));
    SLUICE_ASSERT_OK(t.Run("LookupTableInsert", {keys({2}), Words({"B"})}));
    SLUICE_ASSERT_OK(t.Run("LookupTableRemove", {keys({1, 7})}));
    EXPECT_EQ(t.Size(), 2);
    auto found = t.Find(keys({1, 2, 3}), Tensor::Scalar<std::string>("-"));
    ASSERT_TRUE(found.ok()) << found.status();
    ExpectClose(*found, Words({"-", "B", "c"}));
    auto all = t.Call("LookupTableExport", {},
                      {{"Tkeys", key}, {"Tvalues", DType::kString}});
    ASSERT_TRUE(all.ok()) << all.status();
    ExpectClose((*all)[0], keys({3, 2}));
    ExpectClose((*all)[1], Words({"c", "B"}));
    SLUICE_ASSERT_OK(t.Run("LookupTableImport", {keys({9}), Words({"z"})}));
    EXPECT_EQ(t.Size(), 1);
  }
}

TEST(MutableHashTableOfTensors, HasValuesOfOneShape) {
  TableFixture t("MutableHashTableOfTensorsV2", DType::kString, DType::kFloat,
                 {{"value_shape", PartialShape({2})}});
  SLUICE_ASSERT_OK(
      t.Run("LookupTableInsert",
            {Words({"a", "b"}), Tensor::Of<float>({2, 2}, {1, 2, 3, 4})}));
  auto found = t.Find(Words({"b", "x"}), Tensor::Vector<float>({-1, -2}));
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectClose(*found, Tensor::Of<float>({2, 2}, {3, 4, -1, -2}));
  SLUICE_ASSERT_OK(t.Run("LookupTableRemove", {Words({"a"})}));
  found = t.Find(Words({"b"}), Tensor::Vector<float>({-1, -2}));
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectClose(*found, Tensor::Of<float>({1, 2}, {3, 4}));
  EXPECT_THAT(
      t.Run("LookupTableInsert", {Words({"a"}), Tensor::Vector<float>({1})}),
      StatusIs(Code::kInvalidArgument,
               "Expected shape [1,2] for value, got [1]"));
}

TEST(MutableDenseHashTable, ReservesTwoKeys) {
  TableFixture t("MutableDenseHashTableV2", DType::kInt64, DType::kInt64, {},
                 {Tensor::Scalar<int64_t>(0), Tensor::Scalar<int64_t>(-1)});
  SLUICE_ASSERT_OK(t.Run("LookupTableInsert", {Ints({5, 6}), Ints({50, 60})}));
  auto found = t.Find(Ints({6, 7}), Tensor::Scalar<int64_t>(-9));
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectClose(*found, Ints({60, -9}));
  EXPECT_THAT(t.Run("LookupTableInsert", {Ints({0}), Ints({1})}),
              StatusIs(Code::kInvalidArgument,
                       "Using the empty_key as a table key is not allowed"));
  EXPECT_THAT(t.Find(Ints({-1}), Tensor::Scalar<int64_t>(0)).status(),
              StatusIs(Code::kInvalidArgument,
                       "Using the deleted_key as a table key is not allowed"));
  TableFixture same("MutableDenseHashTableV2", DType::kInt64, DType::kInt64, {},
                    {Tensor::Scalar<int64_t>(3), Tensor::Scalar<int64_t>(3)});
  EXPECT_THAT(same.Call("LookupTableSize", {}).status(),
              StatusIs(Code::kInvalidArgument,
                       "Empty and deleted keys cannot be equal"));
  TableFixture buckets(
      "MutableDenseHashTableV2", DType::kInt64, DType::kInt64,
      {{"initial_num_buckets", int64_t{12}}},
      {Tensor::Scalar<int64_t>(0), Tensor::Scalar<int64_t>(1)});
  EXPECT_THAT(buckets.Call("LookupTableSize", {}).status(),
              StatusIs(Code::kInvalidArgument, HasSubstr("power of 2")));
}

TEST(MutableDenseHashTable, TakesVectorsAsKeys) {
  TableFixture t("MutableDenseHashTableV2", DType::kInt64, DType::kString, {},
                 {Ints({0, 0}), Ints({-1, -1})});
  SLUICE_ASSERT_OK(
      t.Run("LookupTableInsert",
            {Tensor::Of<int64_t>({2, 2}, {1, 2, 2, 1}), Words({"12", "21"})}));
  auto found = t.Find(Tensor::Of<int64_t>({3, 2}, {2, 1, 1, 1, 1, 2}),
                      Tensor::Scalar<std::string>("-"));
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectClose(*found, Words({"21", "-", "12"}));
  EXPECT_THAT(t.Find(Ints({1, 2, 3}), Tensor::Scalar<std::string>("")).status(),
              StatusIs(Code::kInvalidArgument,
                       "Input key shape [3] must end with [2]"));
  auto all = t.Call("LookupTableExport", {},
                    {{"Tkeys", DType::kInt64}, {"Tvalues", DType::kString}});
  ASSERT_TRUE(all.ok()) << all.status();
  ExpectClose((*all)[0], Tensor::Of<int64_t>({2, 2}, {1, 2, 2, 1}));
}

class TextFile {
 public:
  explicit TextFile(const std::string& contents) : path_(dir_ / "vocabulary") {
    SLUICE_EXPECT_OK(RealFileSystem().WriteFile(path_, contents));
  }
  const std::string& path() const { return path_; }
  absl::Status Fill(TableFixture& t, int64_t key, int64_t value,
                    int64_t size = -1) const {
    return t.Run(
        "InitializeTableFromTextFile", {Tensor::Scalar(path_)},
        {{"key_index", key}, {"value_index", value}, {"vocab_size", size}});
  }

 private:
  TempDir dir_;
  std::string path_;
};

TEST(TextFileTable, TakesLinesAndTheirNumbers) {
  const TextFile file("brain\r\nsalad\nsurgery");
  TableFixture ids("HashTableV2", DType::kString, DType::kInt64);
  SLUICE_ASSERT_OK(file.Fill(ids, -2, -1));
  auto found =
      ids.Find(Words({"surgery", "brain", "x"}), Tensor::Scalar<int64_t>(-1));
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectClose(*found, Ints({2, 0, -1}));
  TableFixture words("HashTable", DType::kInt64, DType::kString);
  SLUICE_ASSERT_OK(file.Fill(words, -1, -2, 2));
  EXPECT_EQ(words.Size(), 2);
  TableFixture more("HashTableV2", DType::kString, DType::kInt64);
  EXPECT_THAT(
      file.Fill(more, -2, -1, 4),
      StatusIs(Code::kInvalidArgument, "Invalid vocab_size in " + file.path() +
                                           ": expected 4 but got 3"));
}

TEST(TextFileTable, TakesColumnsAndNamesBadLines) {
  const TextFile file("a\t1\t0.5\nb\tx\t1.5\n");
  TableFixture floats("HashTableV2", DType::kString, DType::kFloat);
  SLUICE_ASSERT_OK(file.Fill(floats, 0, 2));
  auto found = floats.Find(Words({"b"}), Tensor::Scalar<float>(0));
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectClose(*found, Tensor::Vector<float>({1.5}));
  TableFixture ints("HashTableV2", DType::kString, DType::kInt64);
  EXPECT_THAT(file.Fill(ints, 0, 1),
              StatusIs(Code::kInvalidArgument,
                       "Field x in line 1 is not a valid int64."));
  EXPECT_THAT(
      file.Fill(ints, 0, 3),
      StatusIs(Code::kInvalidArgument,
               HasSubstr("Invalid number of columns in " + file.path())));
  EXPECT_THAT(file.Fill(ints, -1, 0),
              StatusIs(Code::kInvalidArgument,
                       "Key index for line number requires table key dtype of "
                       "int64, got string"));
  EXPECT_THAT(
      ints.Run("InitializeTableFromTextFile",
               {Tensor::Scalar<std::string>("/nonexistent/x")},
               {{"key_index", int64_t{0}}, {"value_index", int64_t{1}}}),
      StatusIs(Code::kNotFound, "/nonexistent/x; No such file or directory"));
}

}  // namespace table_test
}  // namespace
}  // namespace sluice
