// Savers in other formats and over tasks, recovery, and variables that begin
// with values of a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/testing/temp_dir.h"
#include "sluice/client/collections.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/io/checkpoint_state.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/server/testing/cluster_test.h"
#include "sluice/train/init_from_checkpoint.h"
#include "sluice/train/initialize.h"
#include "sluice/train/meta_graph.h"
#include "sluice/train/saver.h"

namespace sluice {
namespace {
namespace saver_formats {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A variable and a session in which it has its first value.
struct Small {
  explicit Small(Tensor value = Tensor::Vector<float>({1, 2}),
                 bool resource = false)
      : v(scope.Named("v"), std::move(value), {.resource = resource}) {}
  Session& Open() {
    Node* init = GlobalVariablesInitializer(scope);
    EXPECT_TRUE(scope.ok()) << scope.status();
    session = *Session::Create({}, graph);
    SLUICE_EXPECT_OK(session->Run({}, {}, {init}, nullptr));
    return *session;
  }
  float First() {
    std::vector<Tensor> values;
    SLUICE_EXPECT_OK(session->Run({}, {v.value()}, {}, &values));
    return values.empty() ? -1 : values[0].data<float>()[0];
  }
  void Set(float value) {
    std::vector<Tensor> ignored;
    const Output assign =
        v.Assign(scope, scope.Const(Tensor::Vector<float>({value, value})));
    SLUICE_EXPECT_OK(session->Run({}, {assign}, {}, &ignored));
  }

  Graph graph;
  Scope scope{graph};
  Variable v;
  std::unique_ptr<Session> session;
};

TEST(SaverFormats, TheOldFormatIsOneFileOrOneADevice) {
  for (const bool sharded : {false, true}) {
    const TempDir dir;
    Small model;
    Saver saver(model.scope,
                {.sharded = sharded, .write_version = pb::SaverDef::V1});
    Session& session = model.Open();
    const auto prefix = saver.Save(session, dir / "m");
    ASSERT_TRUE(prefix.ok()) << prefix.status();
    EXPECT_EQ(*prefix, dir / (sharded ? "m-\?\?\?\?\?-of-00001" : "m"));
    EXPECT_FALSE(RealFileSystem().Exists(dir / "m.index"));
    EXPECT_TRUE(RealFileSystem().Exists(dir / "m.meta"));
    model.Set(9);
    SLUICE_ASSERT_OK(saver.Restore(session, *prefix));
    EXPECT_EQ(model.First(), 1);
    EXPECT_EQ(saver.restored(), *prefix);
  }
}

TEST(SaverFormats, AWrongShapeNamesTensorShapesAndFile) {
  const TempDir dir;
  Small model;
  Saver saver(model.scope);
  SLUICE_ASSERT_OK(saver.Save(model.Open(), dir / "m").status());
  for (const bool resource : {false, true}) {
    Small other(Tensor::Vector<float>({1, 2, 3}), resource);
    Saver reader(other.scope);
    EXPECT_THAT(reader.Restore(other.Open(), dir / "m"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(StrCat("Tensor v of checkpoint ", dir / "m",
                                          " is float [2], the variable v is "
                                          "float [3]"))));
    EXPECT_EQ(other.First(), 1);
  }
}

TEST(SaverFormats, TheNewestCheckpointThatIsWholeIsRestored) {
  for (const char* damage : {"cut", "gone", "index"}) {
    const TempDir dir;
    Small model;
    Saver saver(model.scope);
    Session& session = model.Open();
    for (int64_t step : {1, 2, 3}) {
      model.Set(static_cast<float>(step));
      SLUICE_ASSERT_OK(
          saver.Save(session, dir / "m", {.global_step = step}).status());
    }
    const auto state = ReadCheckpointState(RealFileSystem(), dir.path());
    ASSERT_TRUE(state.ok() && state->has_value());
    const std::string data = dir / "m-3.data-00000-of-00001";
    if (*damage == 'c') {
      SLUICE_ASSERT_OK(RealFileSystem().WriteFile(data, "x"));
    } else {
      SLUICE_ASSERT_OK(
          RealFileSystem().Delete(*damage == 'g' ? data : dir / "m-3.index"));
    }
    const auto prefix = saver.RestoreNewest(session, **state);
    ASSERT_TRUE(prefix.ok()) << prefix.status();
    EXPECT_EQ(*prefix, dir / "m-2");
    EXPECT_EQ(model.First(), 2);
  }
}

TEST(SaverFormats, CheckpointsOfAnEarlierRunAreTakenOver) {
  const TempDir dir;
  Small model;
  Saver first(model.scope), second(model.scope, {.max_to_keep = 1});
  Session& session = model.Open();
  SLUICE_ASSERT_OK(first.Save(session, dir / "a").status());
  SLUICE_ASSERT_OK(first.Save(session, dir / "b").status());
  second.SetLastCheckpoints({dir / "a"});  // Of an unknown time: stays.
  SLUICE_ASSERT_OK(second.Save(session, dir / "c").status());
  EXPECT_TRUE(RealFileSystem().Exists(dir / "a.index"));
  second.SetLastCheckpointsWithTime({{dir / "b", 5}});
  SLUICE_ASSERT_OK(second.Save(session, dir / "d").status());
  EXPECT_FALSE(RealFileSystem().Exists(dir / "b.index"));
  EXPECT_THAT(second.last_checkpoints(), ElementsAre(dir / "d"));
}

TEST(SaverFormats, VariablesBeginWithValuesOfACheckpoint) {
  const TempDir dir;
  {
    Small model;
    Saver saver(model.scope, {.named = {{"old/v", model.v}}});
    SLUICE_ASSERT_OK(saver.Save(model.Open(), dir / "m").status());
  }
  for (const bool resource : {false, true}) {
    for (const auto& [tensor, name] :
         std::map<std::string, std::string>{{"old/v", "v"}, {"old/", "/"}}) {
      Small model(Tensor::Vector<float>({7, 7}), resource);
      SLUICE_ASSERT_OK(
          InitFromCheckpoint(model.scope, dir.path(), {{tensor, name}}));
      model.Open();
      EXPECT_EQ(model.First(), 1);
    }
  }
  Small model(Tensor::Vector<float>({7, 7, 7}));
  const auto error = [&](const std::string& tensor, const std::string& name) {
    return std::string(
        InitFromCheckpoint(model.scope, dir / "m", {{tensor, name}}).message());
  };
  EXPECT_THAT(error("zz", "v"), HasSubstr("Tensor zz is not found in"));
  EXPECT_THAT(error("zz", "none"), HasSubstr("should map to scope only zz"));
  EXPECT_THAT(error("old/v", "v"),
              HasSubstr("Shape of variable v:0 ([3]) doesn't match with shape "
                        "of tensor old/v ([2])"));
}

TEST(SaverFormats, AMetaGraphIsImportedBelowAScope) {
  const TempDir dir;
  {
    Small model;
    Saver saver(model.scope);
    SLUICE_ASSERT_OK(saver.Save(model.Open(), dir / "m").status());
  }
  Graph graph;
  const Variable mine(Scope(graph).Named("v"), Tensor::Scalar<float>(5));
  const auto saver =
      ImportMetaGraphFile(dir / "m.meta", &graph, {.import_scope = "old"});
  ASSERT_TRUE(saver.ok()) << saver.status();
  ASSERT_NE(*saver, nullptr);
  EXPECT_EQ((*saver)->def().restore_op_name(), "old/save/restore_all");
  std::vector<std::string> names;
  for (const Variable& v : GlobalVariables(graph)) names.push_back(v.name());
  EXPECT_THAT(names, ElementsAre("v", "old/v"));
  const auto session = *Session::Create({}, graph);
  SLUICE_ASSERT_OK((*saver)->Restore(*session, dir / "m"));
  std::vector<Tensor> values;
  SLUICE_ASSERT_OK(
      session->Run({}, {GlobalVariables(graph)[1].value()}, {}, &values));
  EXPECT_TRUE(TensorsEqual(values[0], Tensor::Vector<float>({1, 2})));
  Graph empty;
  EXPECT_THAT(
      ImportMetaGraphFile(dir / "none.meta", &empty).status(),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("does not exist.")));
}

using GatheredSaver = ClusterTest;

TEST_F(GatheredSaver, WritesAllPartsAtOneTaskAndBringsThemBack) {
  const TempDir dir;
  Graph graph;
  const Scope scope(graph);
  const Scope ps = scope.Device("/job:ps/task:0");
  const Scope other = scope.Device("/job:worker/task:1");
  Tensor large(DType::kFloat, {3'000'001});
  std::fill_n(large.mutable_data<float>().begin(), large.size(), 1.5f);
  const Variable a(ps.Named("a"), large);
  const Variable b(other.Named("b"), Tensor::Vector<int64_t>({2, 3}),
                   {.resource = true});
  const Variable c(other.Named("c"), Tensor::Scalar<std::string>("text"));
  Saver saver(scope, {.gather_to = "/job:worker/task:0"});
  Node* init = GlobalVariablesInitializer(scope);
  ASSERT_TRUE(scope.ok()) << scope.status();
  EXPECT_TRUE(saver.def().sharded());
  auto session = Open(worker0_->target(), graph);
  SLUICE_ASSERT_OK(session->Run({}, {}, {init}, nullptr));
  const auto prefix = saver.Save(*session, dir / "m");
  ASSERT_TRUE(prefix.ok()) << prefix.status();
  EXPECT_TRUE(RealFileSystem().Exists(dir / "m.data-00001-of-00002"));
  const auto reader = CheckpointReader::Open(RealFileSystem(), *prefix);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(TensorsEqual((*reader)->Lookup("a").value(), large));
  std::vector<Tensor> values;
  SLUICE_ASSERT_OK(session->Run(
      {},
      {b.Assign(other, other.Const(Tensor::Vector<int64_t>({0, 0}))),
       a.Assign(ps, ps.Add("ZerosLike", {a.value()}))},
      {}, &values));
  SLUICE_ASSERT_OK(saver.Restore(*session, *prefix));
  SLUICE_ASSERT_OK(
      session->Run({}, {a.value(), b.value(), c.value()}, {}, &values));
  EXPECT_TRUE(TensorsEqual(values[0], large));
  EXPECT_TRUE(TensorsEqual(values[1], Tensor::Vector<int64_t>({2, 3})));
  EXPECT_EQ(values[2].scalar<std::string>(), "text");
  Saver missing(scope,
                {.named = {{"aa", a}}, .gather_to = "/job:worker/task:0"});
  EXPECT_THAT(missing.Restore(*session, *prefix),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("Key aa not found in checkpoint")));
}

}  // namespace saver_formats
}  // namespace
}  // namespace sluice
