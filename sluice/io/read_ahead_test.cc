#include "sluice/io/read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace sluice {
namespace {

// A file in memory that remembers what was asked of it.
class CountedFile : public RandomAccessFile {
 public:
  CountedFile(std::string bytes, std::vector<size_t>* reads)
      : bytes_(std::move(bytes)), reads_(reads) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  absl::StatusOr<size_t> Read(uint64_t offset, size_t n,
                              char* scratch) const override {
    reads_->push_back(n);
    return bytes_.copy(scratch, n, std::min(offset, bytes_.size()));
  }

 private:
  const std::string bytes_;
  std::vector<size_t>* const reads_;
};

class ReadAheadTest : public testing::Test {
 protected:
  ReadAheadTest() : bytes_(1 << 20, '\0') {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      bytes_[i] = static_cast<char>(i * 31 >> 8);
    }
    file_ = WithReadAhead(std::make_unique<CountedFile>(bytes_, &reads_));
  }
  std::string Read(uint64_t offset, size_t n) {
    std::string piece(n, '\0');
    const auto got = file_->Read(offset, n, piece.data());
    EXPECT_TRUE(got.ok()) << got.status();
    piece.resize(*got);
    return piece;
  }

  std::string bytes_;
  std::vector<size_t> reads_;
  std::unique_ptr<RandomAccessFile> file_;
};

TEST_F(ReadAheadTest, PiecesInARowComeOutOfAFewReads) {
  for (size_t at = 0; at < bytes_.size(); at += 4000) {
    EXPECT_EQ(Read(at, 4000), bytes_.substr(at, 4000)) << at;
  }
  EXPECT_LE(reads_.size(), 6u);
}

TEST_F(ReadAheadTest, APieceThatStandsAloneIsReadAlone) {
  EXPECT_EQ(Read(5000, 100), bytes_.substr(5000, 100));
  EXPECT_EQ(Read(700000, 100), bytes_.substr(700000, 100));
  EXPECT_EQ(reads_, (std::vector<size_t>{100, 100}));
  EXPECT_EQ(Read(0, 500000), bytes_.substr(0, 500000));
  EXPECT_EQ(reads_.back(), 500000u);
}

TEST_F(ReadAheadTest, EndsWhereTheFileEnds) {
  EXPECT_EQ(Read(0, 100), bytes_.substr(0, 100));
  EXPECT_EQ(Read(bytes_.size() - 150, 100),
            bytes_.substr(bytes_.size() - 150, 100));
  EXPECT_EQ(Read(bytes_.size() - 50, 100), bytes_.substr(bytes_.size() - 50));
  EXPECT_EQ(Read(bytes_.size() + 50, 100), "");
}

}  // namespace
}  // namespace sluice
