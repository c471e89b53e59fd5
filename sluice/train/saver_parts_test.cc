// Variables in parts: a checkpoint has the whole, whoever cut it and how.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sluice/base/testing/temp_dir.h"
#include "sluice/client/collections.h"
#include "sluice/client/embedding.h"
#include "sluice/client/initializers.h"
#include "sluice/client/variable_scope.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/train/adam_optimizers.h"
#include "sluice/train/global_step.h"
#include "sluice/train/init_from_checkpoint.h"
#include "sluice/train/initialize.h"
#include "sluice/train/meta_graph.h"
#include "sluice/train/moving_averages.h"
#include "sluice/train/optimizers.h"
#include "sluice/train/saver.h"

namespace sluice {
namespace {
namespace saver_parts_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr char kGolden[] = "tests/golden/checkpoints/partitioned-1";

// A table of [5,4] in parts, which may hold 0, 1, 2, … in the order of the
// whole.
std::vector<Variable> Counted(const Scope& scope, const std::string& name,
                              int parts, int axis) {
  return VariableScope(scope).GetPartitionedVariable(
      name, {5, 4},
      {.initializer = ZerosInitializer,
       .partitioner = FixedSizePartitioner(parts, axis)});
}

Tensor Count(const Variable& part) {
  Tensor values(DType::kFloat, part.shape().AsShape());
  const int64_t columns = part.shape().dim(1);
  for (int64_t i = 0; i < values.size(); ++i) {
    const int64_t row = part.slice()->offset[0] + i / columns;
    const int64_t column = part.slice()->offset[1] + i % columns;
    values.mutable_data<float>()[i] = static_cast<float>(row * 4 + column);
  }
  return values;
}

void ExpectCounted(Session& session, const std::vector<Variable>& parts) {
  for (const Variable& part : parts) {
    std::vector<Tensor> values;
    SLUICE_ASSERT_OK(session.Run({}, {part.value()}, {}, &values));
    EXPECT_TRUE(TensorsEqual(values[0], Count(part))) << part.name();
  }
}

// Writes a table that is cut so, and returns the prefix.
std::string SaveTable(const std::string& path, int parts, int axis,
                      const SaverOptions& options = {}) {
  Graph graph;
  const Scope scope(graph);
  const std::vector<Variable> table = Counted(scope, "table", parts, axis);
  std::vector<Output> values;
  for (const Variable& part : table) {
    values.push_back(part.Assign(scope, scope.Const(Count(part))));
  }
  Saver saver(scope, options);
  EXPECT_TRUE(scope.ok()) << scope.status();
  auto session = *Session::Create({}, graph);
  std::vector<Tensor> ignored;
  SLUICE_EXPECT_OK(session->Run({}, values, {}, &ignored));
  const auto prefix = saver.Save(*session, path);
  EXPECT_TRUE(prefix.ok()) << prefix.status();
  return prefix.value_or("");
}

TEST(SaverOfParts, RestoresIntoOtherParts) {
  const TempDir dir;
  const std::string prefixes[] = {
      SaveTable(dir / "whole", 1, 0), SaveTable(dir / "rows", 2, 0),
      SaveTable(dir / "columns", 3, 1),
      SaveTable(dir / "sharded", 2, 0, {.sharded = true}),
      SaveTable(dir / "old", 2, 0, {.write_version = pb::SaverDef::V1})};
  for (const std::string& prefix : prefixes) {
    for (const auto& [parts, axis] :
         {std::pair(1, 0), std::pair(3, 0), std::pair(4, 1)}) {
      SCOPED_TRACE(StrCat(prefix, " ", parts, " ", axis));
      Graph graph;
      const Scope scope(graph);
      const std::vector<Variable> table = Counted(scope, "table", parts, axis);
      Saver saver(scope);
      auto session = *Session::Create({}, graph);
      SLUICE_ASSERT_OK(saver.Restore(*session, prefix));
      ExpectCounted(*session, table);
    }
  }
}

TEST(SaverOfParts, RestoresIntoAWholeVariableAndFromOne) {
  const TempDir dir;
  const std::string parts = SaveTable(dir / "parts", 2, 0);
  Graph graph;
  const Scope scope(graph);
  const Variable table(scope.Named("table"), ZerosInitializer({5, 4}));
  Saver saver(scope);
  auto session = *Session::Create({}, graph);
  SLUICE_ASSERT_OK(saver.Restore(*session, parts));
  const auto whole = saver.Save(*session, dir / "whole");
  ASSERT_TRUE(whole.ok()) << whole.status();
  Graph other;
  const Scope again(other);
  const std::vector<Variable> cut = Counted(again, "table", 3, 0);
  Saver second(again);
  auto session2 = *Session::Create({}, other);
  SLUICE_ASSERT_OK(second.Restore(*session2, *whole));
  ExpectCounted(*session2, cut);
}

TEST(SaverOfParts, GivesThePartsAnotherName) {
  const TempDir dir;
  const std::string prefix = SaveTable(dir / "m", 2, 0);
  Graph graph;
  const Scope scope(graph);
  const std::vector<Variable> table = Counted(scope, "renamed", 3, 0);
  SaverOptions options;
  for (const Variable& part : table) options.named.emplace("table", part);
  Saver saver(scope, options);
  ASSERT_TRUE(scope.ok()) << scope.status();
  auto session = *Session::Create({}, graph);
  SLUICE_ASSERT_OK(saver.Restore(*session, prefix));
  ExpectCounted(*session, table);
}

TEST(SaverOfParts, SaysWhatDoesNotFit) {
  const auto error = [](const auto& build) {
    Graph graph;
    const Scope scope(graph);
    const Saver saver(scope, build(scope));
    return std::string(scope.status().message());
  };
  EXPECT_THAT(error([](const Scope& scope) {
                Counted(scope, "table", 2, 0);
                Variable(scope.Named("table"), ZerosInitializer({5, 4}));
                return SaverOptions();
              }),
              HasSubstr("Mixing slices and non-slices with the same name: "));
  EXPECT_THAT(error([](const Scope& scope) {
                SaverOptions options;
                options.named.emplace("x", Counted(scope, "a", 2, 0)[0]);
                options.named.emplace("x", Counted(scope, "b", 2, 0)[1]);
                return options;
              }),
              HasSubstr("Slices must all be from the same tensor: a != b"));
}

TEST(SaverOfParts, NamesTheWholeWhenShapesDiffer) {
  const TempDir dir;
  const std::string prefix = SaveTable(dir / "m", 2, 0);
  for (const bool resource : {false, true}) {
    Graph graph;
    const Scope scope(graph);
    PartitionedVariable(
        scope.Named("table"), {6, 4}, 2,
        [](const Shape& part) { return ZerosInitializer(part); },
        {.resource = resource});
    Saver saver(scope);
    auto session = *Session::Create({}, graph);
    const absl::Status status = saver.Restore(*session, prefix);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("[5,4]"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("[6,4]"));
  }
}

// Builds what wrote the golden checkpoint: three variables, two of them in
// parts, and the slots of Adagrad.
void BuildGolden(const Scope& scope, int rows, int columns) {
  const VariableScope part(scope, "part");
  std::vector<Variable> all = part.GetPartitionedVariable(
      "emb", {10, 4}, {.partitioner = FixedSizePartitioner(rows)});
  for (const Variable& v : part.GetPartitionedVariable(
           "cols", {3, 5}, {.partitioner = FixedSizePartitioner(columns, 1)})) {
    all.push_back(v);
  }
  all.push_back(part.GetVariable("single", {3}));
  const Variable step = GetOrCreateGlobalStep(scope);
  std::vector<GradAndVar> gradients;
  for (const Variable& v : all) {
    gradients.push_back({Grad(v.value()), v});
  }
  AdagradOptimizer(0.1).ApplyGradients(scope, gradients, step);
}

TEST(SaverOfParts, WritesPartsAndSlotsOfTensorFlowAgainByteForByte) {
  Graph graph;
  const Scope scope(graph);
  BuildGolden(scope, 3, 2);
  Saver saver(scope);
  ASSERT_TRUE(scope.ok()) << scope.status();
  auto session = *Session::Create({}, graph);
  SLUICE_ASSERT_OK(saver.Restore(*session, kGolden));
  const TempDir dir;
  const auto prefix = saver.Save(*session, dir / "m", {.global_step = 1});
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  for (const char* file : {".index", ".data-00000-of-00001"}) {
    EXPECT_EQ(*RealFileSystem().ReadFile(*prefix + file),
              *RealFileSystem().ReadFile(std::string(kGolden) + file))
        << file;
  }
}

TEST(SaverOfParts, OtherPartsHoldTheSameWholes) {
  Graph graph;
  const Scope scope(graph);
  BuildGolden(scope, 4, 5);
  Saver saver(scope);
  ASSERT_TRUE(scope.ok()) << scope.status();
  auto session = *Session::Create({}, graph);
  SLUICE_ASSERT_OK(saver.Restore(*session, kGolden));
  const TempDir dir;
  const auto prefix = saver.Save(*session, dir / "m");
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  const auto golden = CheckpointReader::Open(RealFileSystem(), kGolden);
  const auto ours = CheckpointReader::Open(RealFileSystem(), *prefix);
  ASSERT_TRUE(golden.ok() && ours.ok());
  for (const char* name : {"part/emb", "part/cols", "part/emb/Adagrad",
                           "part/cols/Adagrad", "part/single"}) {
    EXPECT_TRUE(TensorsEqual((*ours)->Lookup(name).value(),
                             (*golden)->Lookup(name).value()))
        << name;
  }
}

TEST(SaverOfParts, AllThatIsKeptBesidePartsIsWhole) {
  Graph graph;
  const Scope scope(graph);
  const std::vector<Variable> table = Counted(scope, "table", 2, 0);
  std::vector<GradAndVar> gradients;
  for (const Variable& v : table) {
    gradients.push_back({Grad(v.value()), v});
  }
  AdamOptimizer(0.1).ApplyGradients(scope, gradients);
  ExponentialMovingAverage ema(0.9);
  ema.Apply(scope, table);
  ASSERT_TRUE(scope.ok()) << scope.status();
  std::set<std::string> names;
  for (const Variable& v : GlobalVariables(graph)) {
    names.insert(v.saved_name());
  }
  EXPECT_THAT(names, UnorderedElementsAre("table", "table/Adam", "table/Adam_1",
                                          "beta1_power", "beta2_power",
                                          "table/ExponentialMovingAverage"));
  std::vector<std::string> restored;
  for (const auto& [name, v] : ema.variables_to_restore(graph)) {
    if (v.slice()) restored.push_back(StrCat(name, " ", v.name()));
  }
  EXPECT_THAT(restored,
              testing::Contains("table/ExponentialMovingAverage table/part_1"));
}

TEST(SaverOfParts, AMetaGraphTellsOfParts) {
  Graph graph;
  const Scope scope(graph);
  Counted(scope, "table", 2, 0);
  const pb::MetaGraphDef meta = ExportMetaGraph(graph, nullptr);
  Graph copy;
  SLUICE_ASSERT_OK(ImportMetaGraph(meta, &copy, {.import_scope = "in"}));
  std::vector<std::string> parts;
  for (const Variable& v : GlobalVariables(copy)) {
    parts.push_back(
        StrCat(v.name(), " ", v.saved_name(), " ", v.saved_slice()));
  }
  EXPECT_THAT(parts, ElementsAre("in/table/part_0 in/table 5 4 0,3:0,4",
                                 "in/table/part_1 in/table 5 4 3,2:0,4"));
}

TEST(SaverOfParts, InitFromCheckpointFindsThem) {
  const TempDir dir;
  const std::string prefix = SaveTable(dir / "m", 2, 0);
  Graph graph;
  const Scope scope(graph);
  Counted(scope, "mine", 3, 0);
  SLUICE_ASSERT_OK(InitFromCheckpoint(scope, prefix, {{"table", "mine"}}));
  Node* init = GlobalVariablesInitializer(scope);
  auto session = *Session::Create({}, graph);
  SLUICE_ASSERT_OK(session->Run({}, {}, {init}, nullptr));
  ExpectCounted(*session, GlobalVariables(graph));
}

}  // namespace saver_parts_test
}  // namespace
}  // namespace sluice
