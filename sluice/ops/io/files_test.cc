#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "sluice/base/file.h"
#include "sluice/base/testing/temp_dir.h"
#include "sluice/base/thread_pool.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/state/testing/op_session.h"

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(Files, AreWrittenAndReadWhole) {
  const TempDir dir;
  const std::string path = dir / "made/on/the/way";
  const std::string contents("a\0b\n", 4);
  OpTest write("WriteFile");
  write.AddInput(Tensor::Scalar(path)).AddInput(Tensor::Scalar(contents));
  SLUICE_ASSERT_OK(write.Run());
  OpTest read("ReadFile");
  read.AddInput(Tensor::Scalar(path));
  SLUICE_ASSERT_OK(read.Run());
  EXPECT_EQ(read.output(0).scalar<std::string>(), contents);
}

TEST(Files, ThatAreMissingAreNamed) {
  OpTest read("ReadFile");
  read.AddInput(Tensor::Scalar<std::string>("/nonexistent/file"));
  EXPECT_THAT(read.Run(),
              StatusIs(absl::StatusCode::kNotFound,
                       "/nonexistent/file; No such file or directory"));
  OpTest vector("ReadFile");
  vector.AddInput(Tensor::Vector<std::string>({"a"}));
  EXPECT_THAT(vector.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Input filename tensor must be scalar, but had shape: "
                       "[1]"));
}

TEST(Files, AreFoundByPatterns) {
  const TempDir dir;
  for (const char* name : {"b.txt", "a.txt", "c.bin"}) {
    SLUICE_ASSERT_OK(RealFileSystem().WriteFile(dir / name, ""));
  }
  OpTest match("MatchingFiles");
  match.AddInput(Tensor::Vector<std::string>({dir / "c*", dir / "*.txt"}));
  SLUICE_ASSERT_OK(match.Run());
  ExpectClose(match.output(0),
              Tensor::Vector<std::string>(
                  {dir / "a.txt", dir / "b.txt", dir / "c.bin"}));
  OpTest nothing("MatchingFiles");
  nothing.AddInput(Tensor::Scalar(dir / "x*"));
  SLUICE_ASSERT_OK(nothing.Run());
  EXPECT_EQ(nothing.output(0).shape(), Shape({0}));
  OpTest matrix("MatchingFiles");
  matrix.AddInput(Tensor::Of<std::string>({1, 1}, {"a"}));
  EXPECT_THAT(matrix.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("must be scalar or vector")));
}

TEST(Files, AreNotReadOnTheThreadThatStartsTheKernel) {
  Graph graph;
  Node* name = *graph.AddNode(
      {"name", "TestInput", {}, {}, {{"dtype", DType::kString}}, ""});
  for (const char* op : {"ReadFile", "MatchingFiles"}) {
    Node* node = *graph.AddNode({op, op, {name->output(0)}, {}, {}, ""});
    const auto kernel = MakeKernel(*node, TestDevice());
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_NE((*kernel)->AsAsync(), nullptr) << op;
  }
}

// A disk that hangs, as far as the ops on it can tell.
TEST(Files, ThatHangKeepNobodyFromComputingAndAreNamed) {
  const TempDir dir;
  const std::string fifo = dir / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const auto device = MakeTestDevice();
  OpSession session(*device);
  std::vector<std::shared_ptr<OpRun>> reads;
  const Output name = session.Value(Tensor::Scalar(fifo));
  for (int i = 0; i < 40; ++i) {  // More than work at a time.
    reads.push_back(session.Start(
        session.Add("ReadFile", {name}, {}, StrCat("hanging", i))));
  }
  Notification computed;
  ComputePool().Schedule([&] { computed.Notify(); });
  EXPECT_TRUE(computed.WaitFor(std::chrono::seconds(60)));
  std::string waits;
  for (const WaitInfo& wait : WaitTable::Global().List()) {
    StrAppend(&waits, wait.what, " for ", wait.where, "\n");
  }
  EXPECT_THAT(waits, HasSubstr("files, by ReadFile for hanging0 on /job:"));
  EXPECT_THAT(waits, HasSubstr("hanging39"));
  EXPECT_FALSE(reads[0]->finished());
  // Opening it for reading takes a writer. What is read does not matter here.
  for (const auto& read : reads) {
    while (!read->finished()) {
      const int writer = open(fifo.c_str(), O_WRONLY | O_NONBLOCK);
      if (writer >= 0) close(writer);
      std::this_thread::yield();
    }
  }
}

TEST(Files, HaveKnownShapes) {
  EXPECT_EQ(InferredShape("ReadFile", {"?"}, {}, DType::kString), "[]");
  EXPECT_EQ(InferredShape("MatchingFiles", {"?"}, {}, DType::kString), "[?]");
}

TEST(ShardedNames, AreThoseOfTensorFlow) {
  OpTest name("ShardedFilename");
  name.AddInput(Tensor::Scalar<std::string>("p"));
  name.AddInput(Tensor::Scalar<int32_t>(2))
      .AddInput(Tensor::Scalar<int32_t>(4));
  SLUICE_ASSERT_OK(name.Run());
  EXPECT_EQ(name.output(0).scalar<std::string>(), "p-00002-of-00004");
  OpTest spec("ShardedFilespec");
  spec.AddInput(Tensor::Scalar<std::string>("p"));
  spec.AddInput(Tensor::Scalar<int32_t>(4));
  SLUICE_ASSERT_OK(spec.Run());
  EXPECT_EQ(spec.output(0).scalar<std::string>(), "p-\?\?\?\?\?-of-00004");
  OpTest vector("ShardedFilespec");
  vector.AddInput(Tensor::Scalar<std::string>("p"));
  vector.AddInput<int32_t>({1}, {4});
  EXPECT_THAT(vector.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "num_shards must be a scalar, got shape [1]"));
}

}  // namespace
}  // namespace sluice
