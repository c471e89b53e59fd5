#include "sluice/train/summary_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/testing/temp_dir.h"
#include "sluice/io/event_file.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/session/session.h"
#include "sluice/train/meta_graph.h"

namespace sluice {
namespace {
namespace summary_writer {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<pb::Event> Events(const std::string& path) {
  auto reader = EventReader::Open(RealFileSystem(), path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<pb::Event> events;
  pb::Event event;
  while (reader.ok() && (*reader)->Read(&event).value_or(false)) {
    events.push_back(event);
  }
  return events;
}

TEST(SummaryWriter, EveryKindOfEventReachesTheFile) {
  const TempDir dir;
  Graph graph;
  const Scope scope(graph);
  const Output x = scope.Const(Tensor::Of<float>({1, 4}, {0, 1, 2, 3}));
  AddScalarSummary(scope, "a b", scope.Scalar(2.5f));
  AddScalarSummary(scope, "inner", scope.Scalar(1.0f), {.family = "outer"});
  AddHistogramSummary(scope, "all", x);
  AddHistogramSummary(scope, "bad", scope.Scalar(NAN), {},
                      /*skip_nonfinite=*/true);
  AddImageSummary(scope, "dot",
                  scope.Add("Reshape", {x, scope.Ints({1, 2, 2, 1})}), 1);
  AddAudioSummary(scope, "beep", x, 100);
  AddTextSummary(scope, "words", scope.Scalar<std::string>("hello"));
  AddTensorSummary(scope, "raw", x);
  AddScalarSummary(scope, "elsewhere", scope.Scalar(1.0f),
                   {.collections = {"mine"}});
  const Output merged = MergeAllSummaries(scope);
  ASSERT_TRUE(scope.ok()) << scope.status();
  auto session = *Session::Create({}, graph);
  std::vector<Tensor> values;
  SLUICE_ASSERT_OK(session->Run({}, {merged}, {}, &values));
  SummaryWriter writer(dir.path(), {.filename_suffix = ".x"});
  writer.AddGraph(graph);
  writer.AddMetaGraph(ExportMetaGraph(graph, nullptr));
  for (int64_t step : {1, 2}) {
    writer.AddSummary(values[0].scalar<std::string>(), step);
  }
  SLUICE_EXPECT_OK(writer.AddRunMetadata({}, "step_1", 1));
  EXPECT_THAT(writer.AddRunMetadata({}, "step_1"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "The provided tag was already used for this event "
                       "type"));
  writer.AddSessionLog(pb::SessionLog::START, "", 2);
  SLUICE_ASSERT_OK(writer.Close());
  EXPECT_TRUE(writer.path().ends_with(".x"));
  const std::vector<pb::Event> events = Events(writer.path());
  ASSERT_EQ(events.size(), 7u);
  std::vector<std::string> tags;
  for (const auto& value : events[3].summary().value()) {
    tags.push_back(value.tag());
  }
  EXPECT_THAT(tags, ElementsAre("a_b", "outer/outer/inner", "all", "bad",
                                "dot/image", "beep/audio/0", "words", "raw"));
  EXPECT_EQ(events[3].summary().value(6).metadata().plugin_data().plugin_name(),
            "text");
  EXPECT_FALSE(events[4].summary().value(6).has_metadata());
  EXPECT_EQ(events[5].tagged_run_metadata().tag(), "step_1");
}

TEST(SummaryWriter, TextMustBeStrings) {
  Graph graph;
  const Scope scope(graph);
  AddTextSummary(scope, "no", scope.Scalar(1.0f));
  EXPECT_THAT(std::string(scope.status().message()),
              HasSubstr("to have dtype string, got float"));
}

TEST(SummaryWriter, OneWriterOfADirectoryIsShared) {
  const TempDir dir;
  const auto a = SharedSummaryWriter(dir / "a");
  EXPECT_EQ(SharedSummaryWriter(dir / "a"), a);
  EXPECT_NE(SharedSummaryWriter(dir / "b"), a);
  a->AddScalar("v", 1, 1);
  CloseSharedSummaryWriters();
  EXPECT_EQ(Events(a->path()).size(), 2u);
  EXPECT_NE(SharedSummaryWriter(dir / "a"), a);
  CloseSharedSummaryWriters();
}

}  // namespace summary_writer
}  // namespace
}  // namespace sluice
