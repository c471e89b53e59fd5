#include "sluice/train/input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_split.h"
#include "sluice/base/file.h"
#include "sluice/base/testing/temp_dir.h"
#include "sluice/client/collections.h"
#include "sluice/io/example.h"
#include "sluice/io/record_file.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/session/session.h"
#include "sluice/train/initialize.h"
#include "sluice/train/queue_runner.h"
#include "sluice/train/testing/golden_graph.h"
#include "sluice/train/testing/scenarios.h"

namespace sluice {
namespace {
namespace input_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Seconds = Coordinator::Seconds;

std::shared_ptr<Session> Open(Graph& graph) {
  auto session = Session::Create({}, graph);
  EXPECT_TRUE(session.ok()) << session.status();
  return std::shared_ptr<Session>(*std::move(session));
}

TEST(Input, BuildsTheGraphThatPythonBuilds) {
  Graph graph;
  const Scope root(graph);
  const InputQueue files = StringInputProducer(
      root, {"a.csv", "b.csv"}, {.num_epochs = 2, .shuffle = true, .seed = 5});
  const Output reader =
      root.Add("TextLineReaderV2", {}, {{"skip_header_lines", int64_t{1}}});
  const std::vector<Output> record =
      root.AddMulti("ReaderReadV2", {reader, files.handle});
  const Scope csv = root.NameScope("DecodeCSV");
  const std::vector<Output> columns =
      root.Named("DecodeCSV/")
          .AddMulti(
              "DecodeCSV",
              {record[1],
               csv.Named("record_defaults_0").Const(Tensor::Vector<float>({0})),
               csv.Named("record_defaults_1").Const(Tensor::Vector<float>({0})),
               csv.Named("record_defaults_2")
                   .Const(Tensor::Vector<int32_t>({0}))});
  const Output features =
      root.Named("stack").Add("Pack", {columns[0], columns[1]});
  ShuffleBatch(
      root, {features, columns[2]}, 4,
      {.num_threads = 2, .capacity = 50, .min_after_dequeue = 10, .seed = 6});
  Batch(root, {features, columns[2]}, 3, {.allow_smaller_final_batch = true});
  const InputQueue range = RangeInputProducer(root, 7, {.shuffle = false});
  range.Dequeue(root);
  const Output values = root.Const(Tensor::Vector<float>({1, 2, 3}));
  const std::vector<Output> rows =
      SliceInputProducer(root, {values}, {.num_epochs = 1, .shuffle = false});
  ASSERT_EQ(rows.size(), 1u);
  const InputQueue pad = {
      root.Named("pad").Add(
          "PaddingFIFOQueueV2", {},
          {{"component_types", std::vector<DType>{DType::kFloat}},
           {"shapes", std::vector<PartialShape>{{-1}}},
           {"capacity", int64_t{10}}}),
      {DType::kFloat},
      {{-1}}};
  pad.Enqueue(root, {root.Named("ones").Const(Tensor::Vector<float>({1, 1}))});
  pad.DequeueMany(root, 2);
  ASSERT_TRUE(root.ok()) << root.status();

  const std::vector<std::string> ours = SortedNodeLines(graph);
  const std::vector<std::string> golden = GoldenNodeLines("input_queues");
  std::vector<std::string> only_ours, only_golden;
  std::ranges::set_difference(ours, golden, std::back_inserter(only_ours));
  std::ranges::set_difference(golden, ours, std::back_inserter(only_golden));
  EXPECT_THAT(only_ours, IsEmpty());
  EXPECT_THAT(only_golden, IsEmpty());
  EXPECT_EQ(QueueRunners(graph)->size(), 5u);
}

TEST(Input, ReadsFilesInBatchesUntilTheEpochsAreOver) {
  const TempDir dir;
  SLUICE_ASSERT_OK(RealFileSystem().WriteFile(dir / "a", "a1\na2\na3\n"));
  SLUICE_ASSERT_OK(RealFileSystem().WriteFile(dir / "b", "b1\nb2\n"));
  Graph graph;
  const Scope root(graph);
  const InputQueue files =
      StringInputProducer(root, {dir / "a", dir / "b"}, {.num_epochs = 2});
  const Output reader = root.Add("TextLineReaderV2", {});
  const std::vector<Output> record =
      root.AddMulti("ReaderReadV2", {reader, files.handle});
  const std::vector<Output> batch =
      ShuffleBatch(root, {record[1]}, 4,
                   {.num_threads = 2,
                    .capacity = 20,
                    .allow_smaller_final_batch = true,
                    .min_after_dequeue = 5});
  Node* const init = LocalVariablesInitializer(root);
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(ShapeOf(batch[0]).DebugString(), "[?]");

  const std::shared_ptr<Session> session = Open(graph);
  SLUICE_ASSERT_OK(session->Run(init));
  Coordinator coordinator;
  SLUICE_ASSERT_OK(StartQueueRunners(graph, session, coordinator));
  std::vector<std::string> lines;
  absl::Status status;
  while (status.ok()) {
    std::vector<Tensor> out;
    status = session->Run({}, {batch[0]}, {}, &out);
    if (!status.ok()) break;
    for (const std::string& line : out[0].data<std::string>()) {
      lines.push_back(line);
    }
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  coordinator.RequestStop();
  SLUICE_EXPECT_OK(coordinator.Join(Seconds(60)));
  std::ranges::sort(lines);
  EXPECT_THAT(lines, testing::ElementsAre("a1", "a1", "a2", "a2", "a3", "a3",
                                          "b1", "b1", "b2", "b2"));
}

TEST(Input, ParsesExamplesThatAProgramWrote) {
  const TempDir dir;
  auto file = RecordWriter::Open(RealFileSystem(), dir / "train.tfrecord",
                                 Compression::kGzip);
  ASSERT_TRUE(file.ok()) << file.status();
  for (int64_t i = 0; i < 4; ++i) {
    const float half = static_cast<float>(i) / 2;
    SLUICE_ASSERT_OK((*file)->Write(ExampleBuilder()
                                        .Ints("label", {i})
                                        .Floats("x", {half, -half})
                                        .Serialize()));
  }
  SLUICE_ASSERT_OK((*file)->Close());

  Graph graph;
  const Scope root(graph);
  const InputQueue files = StringInputProducer(
      root, {dir / "train.tfrecord"}, {.num_epochs = 1, .shuffle = false});
  const Output reader =
      root.Add("TFRecordReaderV2", {}, {{"compression_type", "GZIP"}});
  const std::vector<Output> record =
      root.AddMulti("ReaderReadV2", {reader, files.handle});
  const Output no_label = root.Const(Tensor(DType::kInt64, Shape({0})));
  const Output no_x = root.Const(Tensor(DType::kFloat, Shape({0})));
  const std::vector<Output> parsed = root.AddMulti(
      "ParseSingleExample", {record[1], no_label, no_x},
      {{"num_sparse", int64_t{0}},
       {"sparse_keys", std::vector<std::string>{}},
       {"sparse_types", std::vector<DType>{}},
       {"dense_keys", std::vector<std::string>{"label", "x"}},
       {"Tdense", std::vector<DType>{DType::kInt64, DType::kFloat}},
       {"dense_shapes",
        std::vector<PartialShape>{PartialShape::Scalar(), {2}}}});
  const std::vector<Output> batch = Batch(root, parsed, 4);
  Node* const init = LocalVariablesInitializer(root);
  ASSERT_TRUE(root.ok()) << root.status();

  const std::shared_ptr<Session> session = Open(graph);
  SLUICE_ASSERT_OK(session->Run(init));
  Coordinator coordinator;
  SLUICE_ASSERT_OK(StartQueueRunners(graph, session, coordinator));
  std::vector<Tensor> out;
  SLUICE_ASSERT_OK(session->Run({}, {batch[0], batch[1]}, {}, &out));
  EXPECT_TRUE(TensorsEqual(out[0], Tensor::Vector<int64_t>({0, 1, 2, 3})));
  EXPECT_TRUE(TensorsEqual(
      out[1],
      Tensor::Of<float>({4, 2}, {0, -0.0f, 0.5, -0.5, 1, -1, 1.5, -1.5})));
  EXPECT_EQ(session->Run({}, {batch[0]}, {}, &out).code(),
            absl::StatusCode::kOutOfRange);
  coordinator.RequestStop();
  SLUICE_EXPECT_OK(coordinator.Join(Seconds(60)));
}

TEST(Input, SaysWhatCannotBeBatched) {
  const auto error = [](auto build) {
    Graph graph;
    const Scope root(graph);
    const Output unknown = root.Named("p").Add(
        "Placeholder", {},
        {{"dtype", DType::kFloat}, {"shape", PartialShape()}});
    build(root, unknown);
    return std::string(root.status().message());
  };
  EXPECT_THAT(error([](const Scope& root, Output p) { Batch(root, {p}, 2); }),
              HasSubstr("Cannot infer Tensor's rank: p:0"));
  EXPECT_THAT(error([](const Scope& root, Output) {
                ShuffleBatch(root, {root.Scalar(1.0f)}, 2,
                             {.capacity = 5, .min_after_dequeue = 5});
              }),
              HasSubstr("capacity 5 must be bigger than min_after_dequeue 5"));
  EXPECT_THAT(
      error([](const Scope& root, Output) { StringInputProducer(root, {}); }),
      HasSubstr("requires a non-null input tensor"));
  EXPECT_THAT(
      error([](const Scope& root, Output p) { InputProducer(root, p); }),
      HasSubstr("must have a known shape"));
  EXPECT_THAT(error([](const Scope& root, Output) {
                LimitEpochs(root, root.Scalar(1.0f), 0);
              }),
              HasSubstr("num_epochs must be > 0 not 0"));
  EXPECT_THAT(error([](const Scope& root, Output) {
                BatchJoin(root, {{root.Scalar(1.0f)}, {root.Scalar(1)}}, 2);
              }),
              HasSubstr("types to be consistent"));
}

// A value that a source gives so often, for ever, or never.
Output SourceOf(const Scope& scope, const std::string& kind) {
  const Output one = scope.Scalar(1.0f);
  if (kind == "forever") return one;
  if (kind == "0") {
    const Variable none(
        scope, Tensor::Scalar<int32_t>(0),
        {.trainable = false, .collections = {keys::kLocalVariables}});
    const Output end =
        scope.Add("CountUpTo", {none.ref()}, {{"limit", int64_t{0}}});
    return scope.Control({end}).Add("Identity", {one});
  }
  if (kind[0] >= '1' && kind[0] <= '9') {
    return LimitEpochs(scope, one, std::stoi(kind));
  }
  const Output bad = scope.Add("Log", {scope.Add("Neg", {one})});
  return scope.Add("CheckNumerics", {bad}, {{"message", "of a scenario"}});
}

// tests/scenarios/README.md says what a line holds.
void PlayScenario(const std::vector<std::string>& fields) {
  ASSERT_EQ(fields.size(), 6u);
  Graph graph;
  const Scope root(graph);
  const std::vector<PartialShape> shapes = {PartialShape::Scalar()};
  const InputQueue queue = {
      root.Add("FIFOQueueV2", {},
               {{"component_types", std::vector<DType>{DType::kFloat}},
                {"shapes", shapes},
                {"capacity", int64_t{2}}}),
      {DType::kFloat},
      shapes};
  std::vector<Node*> enqueues;
  const std::vector<std::string> kinds = absl::StrSplit(fields[1], ' ');
  for (const std::string& kind : kinds) {
    enqueues.push_back(queue.Enqueue(root, {SourceOf(root, kind)}));
  }
  AddQueueRunner(graph, MakeQueueRunner(root, queue.handle, enqueues));
  const std::vector<Output> element = queue.Dequeue(root);
  const Output closed = root.Add("QueueIsClosedV2", {queue.handle});
  Node* const init = LocalVariablesInitializer(root);
  ASSERT_TRUE(root.ok()) << root.status();

  const std::shared_ptr<Session> session = Open(graph);
  SLUICE_ASSERT_OK(session->Run(init));
  Coordinator coordinator;
  SLUICE_ASSERT_OK(StartQueueRunners(graph, session, coordinator));
  int taken = 0;
  std::vector<Tensor> out;
  if (fields[2] == "take") {
    while (session->Run({}, {element[0]}, {}, &out).ok()) ++taken;
  }
  if (fields[2] == "wait") {
    EXPECT_TRUE(coordinator.WaitForStop(Seconds(60)));
  }
  coordinator.RequestStop();
  EXPECT_EQ(absl::StatusCodeToString(coordinator.Join(Seconds(60)).code()),
            fields[5]);
  SLUICE_ASSERT_OK(session->Run({}, {closed}, {}, &out));
  EXPECT_EQ(out[0].scalar<bool>(), fields[4] == "closed");
  if (fields[3] != "-") {
    EXPECT_EQ(taken, std::stoi(fields[3]));
  }
}

TEST(QueueRunner, PlaysTheScenariosOfPython) {
  for (const std::vector<std::string>& fields : ScenarioTable("queue_runner")) {
    SCOPED_TRACE(fields[0]);
    PlayScenario(fields);
  }
}

}  // namespace input_test
}  // namespace
}  // namespace sluice
