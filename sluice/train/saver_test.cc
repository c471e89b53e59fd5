#include "sluice/train/saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/memory_file_system.h"
#include "sluice/base/testing/temp_dir.h"
#include "sluice/client/collections.h"
#include "sluice/client/initializers.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/io/checkpoint_state.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/train/initialize.h"
#include "sluice/train/meta_graph.h"
#include "sluice/train/testing/fake_clock.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two variables, and a session in which they are 1 and [2, 3].
struct Model {
  explicit Model(bool resource = false)
      : a(scope.Named("a"), Tensor::Scalar(1.0f), {.resource = resource}),
        b(scope.Named("b"), Tensor::Vector<int64_t>({2, 3}),
          {.resource = resource}) {}

  Session& Open() {
    Node* init = GlobalVariablesInitializer(scope);
    EXPECT_TRUE(scope.ok()) << scope.status();
    session = *Session::Create({}, graph);
    SLUICE_EXPECT_OK(session->Run({}, {}, {init}, nullptr));
    return *session;
  }
  Tensor Value(const Variable& variable) {
    std::vector<Tensor> values;
    SLUICE_EXPECT_OK(session->Run({}, {variable.value()}, {}, &values));
    return values.empty() ? Tensor() : values[0];
  }
  void Assign(const Variable& variable, Tensor value) {
    const Output assign = variable.Assign(scope, scope.Const(std::move(value)));
    std::vector<Tensor> ignored;
    SLUICE_EXPECT_OK(session->Run({}, {assign}, {}, &ignored));
  }

  Graph graph;
  Scope scope{graph};
  Variable a, b;
  std::unique_ptr<Session> session;
};

bool FileExists(const std::string& path) {
  return RealFileSystem().Exists(path);
}

// Calls `between` when the first meta graph is written: after the values of a
// save, and before it is published.
class FilesWithAPause : public MemoryFileSystem {
 public:
  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (to.ends_with(".meta") && between) std::exchange(between, nullptr)();
    return MemoryFileSystem::Rename(from, to);
  }
  std::function<void()> between;
};

TEST(Saver, NamesNoOvertakenCheckpointTheLatest) {
  const TempDir dir;
  FilesWithAPause files;
  SLUICE_ASSERT_OK(files.MkDirs(dir.path()));
  Model model;
  SaverOptions options;
  options.files = &files;
  Saver saver(model.scope, options);
  Session& session = model.Open();
  SaveOptions first, second;
  first.global_step = 1;
  second.global_step = 2;
  files.between = [&] {
    SLUICE_EXPECT_OK(saver.Save(session, dir / "m", second).status());
  };
  SLUICE_ASSERT_OK(saver.Save(session, dir / "m", first).status());
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(dir / "m-1", dir / "m-2"));
}

TEST(Saver, RestoresWhatItSaved) {
  for (const bool resource : {false, true}) {
    for (const bool sharded : {false, true}) {
      const TempDir dir;
      Model model(resource);
      Saver saver(model.scope, {.sharded = sharded});
      Session& session = model.Open();
      const auto prefix =
          saver.Save(session, dir / "model.ckpt", {.global_step = 7});
      ASSERT_TRUE(prefix.ok()) << prefix.status();
      EXPECT_EQ(*prefix, dir / "model.ckpt-7");
      EXPECT_EQ(LatestCheckpoint(RealFileSystem(), dir.path()), *prefix);
      model.Assign(model.a, Tensor::Scalar(9.0f));
      SLUICE_ASSERT_OK(saver.Restore(session, *prefix));
      EXPECT_EQ(model.Value(model.a).scalar<float>(), 1.0f);
      EXPECT_THAT(model.Value(model.b).data<int64_t>(), ElementsAre(2, 3));
    }
  }
}

TEST(Saver, WritesACheckpointOfTensorFlowAgainByteForByte) {
  const std::string golden = "tests/golden/checkpoints/training/model.ckpt-12";
  const auto reader = CheckpointReader::Open(RealFileSystem(), golden);
  ASSERT_TRUE(reader.ok()) << reader.status();
  Graph graph;
  const Scope scope(graph);
  const auto tensors = (*reader)->List();
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  for (const CheckpointTensor& tensor : *tensors) {
    Variable(scope.Named(tensor.name),
             ZerosInitializer(tensor.shape, tensor.dtype));
  }
  Saver saver(scope);
  ASSERT_TRUE(scope.ok()) << scope.status();
  auto session = *Session::Create({}, graph);
  SLUICE_ASSERT_OK(saver.Restore(*session, golden));
  const TempDir dir;
  const auto prefix =
      saver.Save(*session, dir / "model.ckpt", {.global_step = 12});
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  for (const char* part : {".index", ".data-00000-of-00001"}) {
    EXPECT_EQ(*RealFileSystem().ReadFile(*prefix + part),
              *RealFileSystem().ReadFile(golden + part))
        << part;
  }
}

TEST(Saver, KeepsTheNewestCheckpoints) {
  const TempDir dir;
  Model model;
  Saver saver(model.scope, {.max_to_keep = 2});
  Session& session = model.Open();
  for (int step = 1; step <= 4; ++step) {
    SLUICE_ASSERT_OK(
        saver.Save(session, dir / "m", {.global_step = step}).status());
  }
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(dir / "m-3", dir / "m-4"));
  EXPECT_FALSE(FileExists(dir / "m-2.index"));
  EXPECT_FALSE(FileExists(dir / "m-2.meta"));
  EXPECT_TRUE(FileExists(dir / "m-3.index"));
  EXPECT_TRUE(FileExists(dir / "m-3.meta"));
  const auto state = ReadCheckpointState(RealFileSystem(), dir.path());
  ASSERT_TRUE(state.ok() && state->has_value());
  EXPECT_EQ((*state)->model_checkpoint_path(), dir / "m-4");
  EXPECT_THAT((*state)->all_model_checkpoint_paths(),
              ElementsAre(dir / "m-3", dir / "m-4"));
}

TEST(Saver, KeepsACheckpointForGoodEverySoManyHours) {
  const TempDir dir;
  FakeClock clock;
  Model model;
  Saver saver(
      model.scope,
      {.max_to_keep = 1, .keep_checkpoint_every_n_hours = 1, .clock = &clock});
  Session& session = model.Open();
  for (int half_hours = 1; half_hours <= 5; ++half_hours) {
    clock.SetSeconds(half_hours * 1800 + 1);
    SLUICE_ASSERT_OK(
        saver.Save(session, dir / "m", {.global_step = half_hours}).status());
  }
  EXPECT_FALSE(FileExists(dir / "m-1.index"));
  EXPECT_TRUE(FileExists(dir / "m-2.index"));
  EXPECT_FALSE(FileExists(dir / "m-3.index"));
  EXPECT_TRUE(FileExists(dir / "m-4.index"));
  EXPECT_TRUE(FileExists(dir / "m-5.index"));
}

TEST(Saver, GoesOnWithTheCheckpointsOfAnEarlierRun) {
  const TempDir dir;
  Model model;
  Saver first(model.scope, {.max_to_keep = 2});
  Saver second(model.scope, {.max_to_keep = 2});
  Session& session = model.Open();
  for (int step = 1; step <= 2; ++step) {
    SLUICE_ASSERT_OK(
        first.Save(session, dir / "m", {.global_step = step}).status());
  }
  second.RecoverLastCheckpoints({dir / "m-0", dir / "m-1", dir / "m-2"});
  SLUICE_ASSERT_OK(
      second.Save(session, dir / "m", {.global_step = 3}).status());
  EXPECT_THAT(second.last_checkpoints(), ElementsAre(dir / "m-2", dir / "m-3"));
  EXPECT_FALSE(FileExists(dir / "m-1.index"));
}

TEST(Saver, SaysWhatIsWrongWithACheckpoint) {
  const TempDir dir;
  Model model;
  Saver saver(model.scope);
  Saver renamed(model.scope, {.named = {{"other", model.a}}});
  Session& session = model.Open();
  EXPECT_THAT(
      saver.Restore(session, dir / "none"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("The passed save_path is not a valid checkpoint: ")));
  SLUICE_ASSERT_OK(saver.Save(session, dir / "m").status());
  EXPECT_THAT(renamed.Restore(session, dir / "m"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("Key other not found in checkpoint")));
  EXPECT_THAT(
      saver.Save(session, dir / "not/there/m").status().message().data(),
      HasSubstr("doesn't exist"));
  const std::string data = dir / "m.data-00000-of-00001";
  SLUICE_ASSERT_OK(RealFileSystem().WriteFile(
      data, RealFileSystem().ReadFile(data)->substr(1)));
  const absl::Status damaged = saver.Restore(session, dir / "m");
  EXPECT_FALSE(damaged.ok());
  EXPECT_THAT(std::string(damaged.message()), HasSubstr(dir / "m"));
}

TEST(Saver, RefusesWhatItCannotSave) {
  {
    Graph graph;
    const Scope scope(graph);
    const Saver saver(scope);
    EXPECT_EQ(scope.status().message(), "No variables to save");
  }
  {
    Graph graph;
    const Scope scope(graph);
    const Saver saver(scope, {.allow_empty = true});
    EXPECT_TRUE(scope.ok());
    EXPECT_TRUE(saver.empty());
  }
  {
    Model model;
    const Saver saver(model.scope, {.named = {{"x", model.a}, {"y", model.a}}});
    EXPECT_THAT(std::string(model.scope.status().message()),
                HasSubstr("restored with two names: y"));
  }
}

TEST(Saver, AMetaGraphBringsModelAndSaverBack) {
  const TempDir dir;
  {
    Model model;
    Saver saver(model.scope);
    Session& session = model.Open();
    model.Assign(model.a, Tensor::Scalar(5.0f));
    SLUICE_ASSERT_OK(saver.Save(session, dir / "m").status());
  }
  const auto meta = ReadMetaGraph(dir / "m.meta");
  ASSERT_TRUE(meta.ok()) << meta.status();
  Graph graph;
  SLUICE_ASSERT_OK(ImportMetaGraph(*meta, &graph));
  const std::vector<Variable> variables = GlobalVariables(graph);
  ASSERT_EQ(variables.size(), 2u);
  EXPECT_EQ(variables[0].name(), "a");
  const auto saver = Saver::FromDef(graph, meta->saver_def());
  ASSERT_TRUE(saver.ok()) << saver.status();
  auto session = *Session::Create({}, graph);
  SLUICE_ASSERT_OK((*saver)->Restore(*session, dir / "m"));
  std::vector<Tensor> values;
  SLUICE_ASSERT_OK(session->Run({}, {variables[0].value()}, {}, &values));
  EXPECT_EQ(values[0].scalar<float>(), 5.0f);
}

TEST(MetaGraph, AFileThatIsNoneIsAnError) {
  const TempDir dir;
  EXPECT_THAT(
      ReadMetaGraph(dir / "x").status(),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("does not exist")));
  SLUICE_ASSERT_OK(RealFileSystem().WriteFile(dir / "x", "\xff not one"));
  EXPECT_THAT(ReadMetaGraph(dir / "x").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Cannot parse file")));
}

}  // namespace
}  // namespace sluice
