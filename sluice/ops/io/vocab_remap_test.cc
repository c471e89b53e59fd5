#include "sluice/base/file.h"
#include "sluice/base/testing/temp_dir.h"
#include "sluice/io/bundle_writer.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::HasSubstr;

Tensor Text(const std::string& text) { return Tensor::Scalar(text); }

OpTest& Vocabularies(OpTest& op, const TempDir& dir, int64_t offset,
                     int64_t count, int64_t old_size = -1) {
  op.AddInput(Text(dir / "new")).AddInput(Text(dir / "old"));
  return op.Attr("new_vocab_offset", offset)
      .Attr("num_new_vocab", count)
      .Attr("old_vocab_size", old_size);
}

TEST(GenerateVocabRemapping, FindsWordsOfTheNewVocabularyInTheOld) {
  TempDir dir;
  SLUICE_ASSERT_OK(RealFileSystem().WriteFile(dir / "old", "a\nb\nc\n"));
  SLUICE_ASSERT_OK(RealFileSystem().WriteFile(dir / "new", "c\nx\na\nb"));
  OpTest all("GenerateVocabRemapping");
  SLUICE_ASSERT_OK(Vocabularies(all, dir, 0, 4).Run());
  ExpectClose(all.output(0), Tensor::Vector<int64_t>({2, -1, 0, 1}));
  ExpectClose(all.output(1), Tensor::Scalar<int32_t>(3));
  OpTest part("GenerateVocabRemapping");
  SLUICE_ASSERT_OK(Vocabularies(part, dir, 2, 2, /*old_size=*/1).Run());
  ExpectClose(part.output(0), Tensor::Vector<int64_t>({0, -1}));
  OpTest more("GenerateVocabRemapping");
  EXPECT_THAT(Vocabularies(more, dir, 2, 3).Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 4 words, wanted are 3 from 2")));
}

// A checkpoint with the matrix `m`: 1 2 3 / 4 5 6.
void SaveMatrix(const std::string& prefix) {
  BundleWriter writer(RealFileSystem(), prefix);
  SLUICE_ASSERT_OK(
      writer.Add("m", Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6})));
  SLUICE_ASSERT_OK(writer.Finish());
}

OpTest& Load(OpTest& op, const std::string& prefix, Tensor rows, Tensor cols,
             Tensor fill, int64_t num_cols) {
  op.Attr("num_rows", rows.size()).Attr("num_cols", num_cols);
  return op.AddInput(Text(prefix))
      .AddInput(Text("m"))
      .AddInput(std::move(rows))
      .AddInput(std::move(cols))
      .AddInput(std::move(fill));
}

TEST(LoadAndRemapMatrix, FillsWhatTheOldMatrixDoesNotHave) {
  TempDir dir;
  SaveMatrix(dir / "c");
  OpTest rows("LoadAndRemapMatrix");
  SLUICE_ASSERT_OK(Load(rows, dir / "c", Tensor::Vector<int64_t>({1, -1, 0}),
                        Tensor(DType::kInt64, {0}),
                        Tensor::Vector<float>({7, 8, 9}), 3)
                       .Run());
  ExpectClose(rows.output(0),
              Tensor::Of<float>({3, 3}, {4, 5, 6, 7, 8, 9, 1, 2, 3}));
  OpTest both("LoadAndRemapMatrix");
  SLUICE_ASSERT_OK(Load(both, dir / "c", Tensor::Vector<int64_t>({1}),
                        Tensor::Vector<int64_t>({2, -1}),
                        Tensor::Vector<float>({7}), 2)
                       .Run());
  ExpectClose(both.output(0), Tensor::Of<float>({1, 2}, {6, 7}));
}

TEST(LoadAndRemapMatrix, RefusesWhatDoesNotFit) {
  TempDir dir;
  SaveMatrix(dir / "c");
  const auto error = [&](Tensor rows, Tensor cols, Tensor fill, int64_t n) {
    OpTest op("LoadAndRemapMatrix");
    return std::string(Load(op, dir / "c", std::move(rows), std::move(cols),
                            std::move(fill), n)
                           .Run()
                           .message());
  };
  const Tensor none(DType::kInt64, {0}), no_fill(DType::kFloat, {0});
  const auto rows = [](int64_t r) { return Tensor::Vector<int64_t>({r}); };
  EXPECT_THAT(error(rows(2), none, no_fill, 3), HasSubstr("names 2"));
  EXPECT_THAT(error(rows(-1), none, no_fill, 3), HasSubstr("too few"));
  EXPECT_THAT(error(rows(0), none, Tensor::Vector<float>({1}), 3),
              HasSubstr("only 0 are missing"));
  EXPECT_THAT(error(rows(0), none, no_fill, 2), HasSubstr("has 3 columns"));
  EXPECT_THAT(error(Tensor::Vector<int64_t>({1, 1}), none, no_fill, 3),
              HasSubstr("more than once"));
}

}  // namespace
}  // namespace sluice
