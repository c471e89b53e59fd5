// The array ops against recordings of TensorFlow 1.15.5: values and errors of
// kernels, and static shapes and errors of shape functions.
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/array/testing/recording.h"

namespace sluice {
namespace {

void ExpectRecordedRun(const Recorded& record) {
  OpTest op(record.op);
  for (const auto& [name, value] : record.attrs) op.Attr(name, value);
  for (const RecordedInput& input : record.inputs) op.AddInput(TensorOf(input));
  const absl::Status status = op.Run();
  int output = 0;
  for (const std::string& line : record.results) {
    if (line.starts_with("error ")) {
      const std::vector<std::string> parts =
          absl::StrSplit(line.substr(6), absl::MaxSplits(' ', 1));
      EXPECT_EQ(absl::StatusCodeToString(status.code()), parts[0]);
      EXPECT_EQ(status.message(), parts[1]);
      return;
    }
    ASSERT_TRUE(status.ok()) << status;
    ExpectClose(op.output(output++),
                TensorOf(ParseRecordedInput(line.substr(4))), 1e-6);
  }
  EXPECT_TRUE(status.ok()) << status;
}

TEST(RecordedArrayOps, GiveTheSameValuesAndErrors) {
  const std::vector<Recorded> records =
      ReadRecording("tests/golden/array_ops.txt");
  ASSERT_GT(records.size(), 400u);
  for (const Recorded& record : records) {
    SCOPED_TRACE(record.DebugString());
    ExpectRecordedRun(record);
  }
}

// The shapes of all outputs, or "error …" without the part that names the node.
std::string StaticShapes(const Recorded& record) {
  Graph graph;
  Scope scope(graph);
  std::vector<Output> inputs;
  for (const RecordedInput& input : record.inputs) {
    inputs.push_back(AddRecordedInput(scope, "in", input));
  }
  const Node* node =
      scope.Named("node").AddNode(record.op, inputs, record.attrs);
  if (node == nullptr) {
    std::string message(scope.status().message());
    message = message.substr(0, message.rfind(" for 'node'"));
    return StrCat("error ",
                  absl::StrReplaceAll(message, {{"\n", "\\n"}, {"\t", "\\t"}}));
  }
  std::string text = "shape";
  for (int i = 0; i < node->num_outputs(); ++i) {
    const PartialShape& shape = node->output_shape(i);
    StrAppend(&text, " ", shape.known_rank() ? shape.DebugString() : "?");
  }
  return text;
}

// Another value in the place of `text`, small enough to allocate or too large
// to be counted.
std::string MutatedElement(DType dtype, const std::string& text,
                           std::mt19937& random) {
  constexpr const char* kSmall[] = {"-100000", "-3", "-2", "-1", "0",
                                    "1",       "2",  "3",  "5",  "100"};
  constexpr const char* kLarge[] = {
      "-9223372036854775808", "9223372036854775807", "4611686018427387904"};
  if (dtype == DType::kInt64 && random() % 4 == 0) return kLarge[random() % 3];
  if (dtype == DType::kInt32 || dtype == DType::kInt64) {
    return kSmall[random() % 10];
  }
  return text;
}

RecordedInput Mutated(RecordedInput input, std::mt19937& random) {
  for (std::string& value : input.values) {
    if (random() % 4 == 0) value = MutatedElement(input.dtype, value, random);
  }
  if (random() % 4 != 0) return input;
  const std::string first = input.values.empty()
                                ? (IsComplex(input.dtype) ? "0,0" : "0")
                                : input.values[0];
  input.shape = PartialShape::Scalar();
  for (int rank = static_cast<int>(random() % 4); rank > 0; --rank) {
    input.shape.AddDim(random() % 4);
  }
  input.values.resize(input.shape.NumElements(), first);
  return input;
}

// Numbers that do not say how many inputs or outputs there are.
AttrMap Mutated(AttrMap attrs, std::mt19937& random) {
  const AttrMap original = attrs;
  for (const auto& [name, value] : original) {
    const bool count = name == "N" || name.starts_with("num");
    if (value.get<int64_t>() != nullptr && !count && random() % 4 == 0) {
      attrs.Set(name, static_cast<int64_t>(random() % 12) - 5);
    }
  }
  return attrs;
}

// Kernels and shape functions meet any input with a value or an error. What
// they read and write out of bounds, a sanitizer sees.
TEST(RecordedArrayOps, SurviveInputsThatNobodyMeant) {
  std::mt19937 random(1);
  int failed = 0;
  for (const Recorded& original : ReadRecording("tests/golden/array_ops.txt")) {
    for (int i = 0; i < 20; ++i) {
      Recorded record = original;
      record.attrs = Mutated(record.attrs, random);
      for (RecordedInput& input : record.inputs) {
        input = Mutated(input, random);
      }
      OpTest op(record.op);
      for (const auto& [name, value] : record.attrs) op.Attr(name, value);
      for (const RecordedInput& input : record.inputs) {
        op.AddInput(TensorOf(input));
      }
      failed += !op.Run().ok();
      StaticShapes(record);
    }
  }
  EXPECT_GT(failed, 1000);
}

TEST(RecordedArrayOps, InferTheSameShapesAndErrors) {
  const std::vector<Recorded> records =
      ReadRecording("tests/golden/array_shapes.txt");
  ASSERT_GT(records.size(), 200u);
  for (const Recorded& record : records) {
    EXPECT_EQ(StaticShapes(record), absl::StrJoin(record.results, "\n"))
        << record.DebugString();
  }
}

}  // namespace
}  // namespace sluice
