// The array ops against recordings of TensorFlow 1.15.5: values and errors of
// kernels, and static shapes and errors of shape functions.
#include <gtest/gtest.h>

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
