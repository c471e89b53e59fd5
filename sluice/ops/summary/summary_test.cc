// The summary ops against an event file that TensorFlow wrote: it holds both
// the graph, with the inputs as constants, and the summaries.
#include <map>

#include "sluice/base/file.h"
#include "sluice/io/event_file.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

using testing::HasSubstr;

class GoldenSummaries {
 public:
  GoldenSummaries() {
    auto reader = EventReader::Open(
        RealFileSystem(),
        "tests/golden/events/events.out.tfevents.1700000001.host");
    EXPECT_TRUE(reader.ok()) << reader.status();
    pb::Event event;
    while (reader.ok() && (*reader)->Read(&event).value_or(false)) {
      if (event.has_summary()) summaries_[event.step()] = event.summary();
      if (event.has_graph_def()) Keep(event.graph_def());
    }
  }

  // The values at `step` whose tags are `tag` or start with `tag/`.
  pb::Summary Values(int64_t step, const std::string& tag) {
    pb::Summary found;
    for (const pb::Summary::Value& value : summaries_[step].value()) {
      if (value.tag() == tag || value.tag().starts_with(tag + "/")) {
        *found.add_value() = value;
      }
    }
    return found;
  }

  // Output 0 of the node's op on the node's constants. `fed` stands for inputs
  // that are none.
  absl::StatusOr<std::string> Run(const std::string& node, Tensor fed = {}) {
    const pb::NodeDef& def = nodes_[node];
    OpTest op(def.op());
    for (const std::string& input : def.input()) {
      const pb::NodeDef& source = nodes_[input];
      if (source.op() != "Const") {
        op.AddInput(fed);
        continue;
      }
      SLUICE_ASSIGN_OR_RETURN(
          Tensor value, TensorFromProto(source.attr().at("value").tensor()));
      op.AddInput(std::move(value));
    }
    for (const char* attr : {"max_images", "max_outputs"}) {
      if (def.attr().contains(attr)) op.Attr(attr, def.attr().at(attr).i());
    }
    SLUICE_RETURN_IF_ERROR(op.Run());
    return op.output(0).scalar<std::string>();
  }

 private:
  void Keep(const std::string& bytes) {
    pb::GraphDef graph;
    EXPECT_TRUE(graph.ParseFromString(bytes));
    for (const pb::NodeDef& node : graph.node()) nodes_[node.name()] = node;
  }

  std::map<int64_t, pb::Summary> summaries_;
  std::map<std::string, pb::NodeDef> nodes_;
};

void ExpectGolden(int64_t step, const std::string& node, Tensor fed = {}) {
  GoldenSummaries golden;
  const absl::StatusOr<std::string> got = golden.Run(node, std::move(fed));
  ASSERT_TRUE(got.ok()) << node << ": " << got.status();
  const pb::Summary want = golden.Values(step, node);
  ASSERT_GT(want.value_size(), 0) << node;
  pb::Summary parsed;
  ASSERT_TRUE(parsed.ParseFromString(*got)) << node;
  EXPECT_EQ(parsed.DebugString(), want.DebugString()) << node;
  EXPECT_EQ(*got, want.SerializeAsString()) << node;
}

TEST(Summaries, ScalarsAreThoseOfTensorFlow) {
  ExpectGolden(0, "train/loss", Tensor::Scalar<float>(0));
  ExpectGolden(1, "train/loss", Tensor::Scalar<float>(10));
}

TEST(Summaries, HistogramsAreThoseOfTensorFlow) {
  ExpectGolden(0, "h", Tensor::Vector<float>({-2, -1, 0, 1, 2}));
  ExpectGolden(1, "h", Tensor::Vector<float>({-2, 0, 2, 4, 6}));
  ExpectGolden(0, "h_int");
  ExpectGolden(3, "edges");
  ExpectGolden(3, "empty");
}

TEST(Summaries, ImagesAreThoseOfTensorFlow) {
  for (const char* node : {"gray", "neg_rgb", "one", "zero", "below_zero"}) {
    ExpectGolden(0, node);
  }
}

TEST(Summaries, SoundsAreThoseOfTensorFlow) {
  ExpectGolden(0, "tone");
  ExpectGolden(0, "mono");
}

TEST(Summaries, TensorsAreThoseOfTensorFlow) {
  ExpectGolden(0, "note");
  ExpectGolden(0, "raw");
}

TEST(ScalarSummary, TakesSeveralTagsAndEveryRealType) {
  OpTest op("ScalarSummary");
  op.AddInput(Tensor::Vector<std::string>({"a", "b"}));
  op.AddInput<int64_t>({2}, {1, -2});
  SLUICE_ASSERT_OK(op.Run());
  pb::Summary summary;
  ASSERT_TRUE(summary.ParseFromString(op.output(0).scalar<std::string>()));
  EXPECT_EQ(summary.value(1).tag(), "b");
  EXPECT_EQ(summary.value(1).simple_value(), -2);
}

TEST(ScalarSummary, RefusesValuesWithoutTags) {
  OpTest op("ScalarSummary");
  op.AddInput(Tensor::Scalar<std::string>("a")).AddInput<float>({2}, {1, 1});
  EXPECT_THAT(op.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "tags and values not the same shape: [] != [2] (tag "
                       "'a')"));
}

TEST(HistogramSummary, RefusesWhatIsNotFinite) {
  for (const float value : {NAN, INFINITY}) {
    OpTest op("HistogramSummary");
    op.AddInput(Tensor::Scalar<std::string>("h"));
    op.AddInput<float>({2}, {1, value});
    EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   std::isnan(value)
                                       ? "Nan in summary histogram for: op"
                                       : "Infinity in summary histogram for: "
                                         "op"));
  }
}

TEST(HistogramSummary, LeavesOutWhatIsNotFiniteIfAskedTo) {
  OpTest op("HistogramSummary");
  op.AddInput(Tensor::Scalar<std::string>("h"));
  op.AddInput<float>({4}, {1, NAN, -INFINITY, 3}).Attr("_skip_nonfinite", true);
  SLUICE_ASSERT_OK(op.Run());
  pb::Summary summary;
  ASSERT_TRUE(summary.ParseFromString(op.output(0).scalar<std::string>()));
  EXPECT_EQ(summary.value(0).histo().num(), 2);
  EXPECT_EQ(summary.value(0).histo().min(), 1);
  EXPECT_EQ(summary.value(0).histo().max(), 3);
}

TEST(ImageSummary, RefusesWhatIsNoBatchOfImages) {
  OpTest op("ImageSummary");
  op.AddInput(Tensor::Scalar<std::string>("i"));
  op.AddInput<float>({2, 2}, {0, 0, 0, 0});
  EXPECT_THAT(op.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Tensor must be 4-D with last dim 1, 3, or 4, not "
                       "[2,2]"));
}

TEST(ImageSummary, NeedsABadColorForEachChannel) {
  OpTest op("ImageSummary");
  op.AddInput(Tensor::Scalar<std::string>("i"));
  op.AddInput<float>({1, 1, 1, 3}, {0, NAN, 0});
  op.Attr("bad_color", Tensor::Vector<uint8_t>({1}));
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("bad_color needs 3 values")));
}

TEST(AudioSummary, RefusesARateThatIsNone) {
  OpTest op("AudioSummary");
  op.AddInput(Tensor::Scalar<std::string>("a")).AddInput<float>({1, 2}, {0, 0});
  op.Attr("sample_rate", 0.0f);
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("sample_rate must be > 0")));
}

std::string ScalarSummaryOf(const std::string& tag) {
  pb::Summary summary;
  summary.add_value()->set_tag(tag);
  return summary.SerializeAsString();
}

TEST(MergeSummary, PutsSummariesTogether) {
  OpTest op("MergeSummary");
  op.AddInput(Tensor::Scalar(ScalarSummaryOf("a")));
  op.AddInput(Tensor::Scalar(ScalarSummaryOf("b"))).Attr("N", 2);
  SLUICE_ASSERT_OK(op.Run());
  pb::Summary merged;
  ASSERT_TRUE(merged.ParseFromString(op.output(0).scalar<std::string>()));
  ASSERT_EQ(merged.value_size(), 2);
  EXPECT_EQ(merged.value(1).tag(), "b");
}

TEST(MergeSummary, RefusesATagTwiceAndBytesThatAreNoSummary) {
  OpTest twice("MergeSummary");
  twice.AddInput(Tensor::Scalar(ScalarSummaryOf("a")));
  twice.AddInput(Tensor::Scalar(ScalarSummaryOf("a"))).Attr("N", 2);
  EXPECT_THAT(twice.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    "Duplicate tag a found in summary inputs"));
  OpTest broken("MergeSummary");
  broken.AddInput(Tensor::Scalar<std::string>("\xff")).Attr("N", 1);
  EXPECT_THAT(broken.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Could not parse one of the summary inputs"));
}

TEST(TensorSummary, NamesItsNode) {
  OpTest op("TensorSummary");
  op.AddInput<double>({2}, {1, 2});
  SLUICE_ASSERT_OK(op.Run());
  pb::Summary summary;
  ASSERT_TRUE(summary.ParseFromString(op.output(0).scalar<std::string>()));
  EXPECT_EQ(summary.value(0).node_name(), "op");
  EXPECT_EQ(summary.value(0).tensor().tensor_content().size(), 16u);
}

TEST(TensorSummaryV2, RefusesMetadataThatAreNone) {
  OpTest op("TensorSummaryV2");
  op.AddInput(Tensor::Scalar<std::string>("t")).AddInput<float>({1}, {1});
  op.AddInput(Tensor::Scalar<std::string>("\xff"));
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("no SummaryMetadata, for tag t")));
}

TEST(Summaries, AreScalars) {
  EXPECT_EQ(InferredShape("TensorSummary", {"?"}), "[]");
}

}  // namespace
}  // namespace sluice
