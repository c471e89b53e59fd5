#include "sluice/io/table.h"

#include <snappy.h>

#include <map>

#include "sluice/base/coding.h"
#include "sluice/base/crc32c.h"
#include "sluice/base/memory_file_system.h"
#include "sluice/io/table_format.h"
#include "sluice/io/testing/golden.h"

namespace sluice {
namespace {

using Pairs = std::map<std::string, std::string>;

std::string TableOf(const Pairs& pairs) {
  MemoryFileSystem files;
  auto file = files.NewWritable("t");
  TableBuilder builder(file->get());
  for (const auto& [key, value] : pairs) {
    SLUICE_EXPECT_OK(builder.Add(key, value));
  }
  SLUICE_EXPECT_OK(builder.Finish());
  return Contents(files, "t");
}

absl::StatusOr<Pairs> PairsOf(const std::string& bytes) {
  MemoryFileSystem files;
  SLUICE_EXPECT_OK(files.WriteFile("t", bytes));
  auto file = files.NewRandomAccess("t");
  SLUICE_ASSIGN_OR_RETURN(auto table, Table::Open(*std::move(file)));
  Pairs pairs;
  SLUICE_RETURN_IF_ERROR(
      table->Scan("", [&](std::string_view key, std::string_view value) {
        pairs.emplace(key, value);
        return true;
      }));
  return pairs;
}

// Enough for several blocks, with shared prefixes and all kinds of bytes.
Pairs ManyPairs() {
  Pairs pairs = {{"", "header"}, {std::string("\0a", 2), "zero"}};
  for (int i = 0; i < 3000; ++i) {
    pairs["layer_" + std::to_string(i * 7919 % 100'000)] =
        std::string(i % 400, static_cast<char>(i));
  }
  pairs["m"] = std::string(600'000, 'v');
  pairs["\xff\xff"] = "last";
  return pairs;
}

TEST(Table, RewritesTensorFlowsIndexesByteForByte) {
  for (const char* name :
       {"dtypes", "large", "many_keys", "partitioned-1", "quantised", "sharded",
        "slices", "tf2_object", "training/model.ckpt-8"}) {
    const std::string golden = Contents(
        RealFileSystem(), GoldenCheckpoint(std::string(name) + ".index"));
    const absl::StatusOr<Pairs> pairs = PairsOf(golden);
    ASSERT_TRUE(pairs.ok()) << name << pairs.status();
    EXPECT_TRUE(TableOf(*pairs) == golden) << name;
  }
}

TEST(Table, FindsEveryKeyAndNothingElse) {
  const Pairs pairs = ManyPairs();
  MemoryFileSystem files;
  SLUICE_EXPECT_OK(files.WriteFile("t", TableOf(pairs)));
  auto table = Table::Open(*files.NewRandomAccess("t"));
  ASSERT_TRUE(table.ok()) << table.status();
  for (const auto& [key, value] : pairs) {
    EXPECT_EQ((*table)->Find(key).value(), value);
    EXPECT_EQ((*table)->Find(key + "?").value(), std::nullopt);
  }
  EXPECT_EQ((*table)->Find("\xff\xff\xff").value(), std::nullopt);
  auto expected = pairs.lower_bound("layer_5");
  SLUICE_EXPECT_OK(
      (*table)->Scan("layer_5", [&](std::string_view key, std::string_view) {
        EXPECT_EQ(key, expected->first);
        ++expected;
        return true;
      }));
  EXPECT_EQ(expected, pairs.end());
}

TEST(Table, AnEmptyTableHoldsNothing) {
  EXPECT_EQ(PairsOf(TableOf({})).value(), Pairs());
}

TEST(Table, KeysMustRise) {
  MemoryFileSystem files;
  auto file = files.NewWritable("t");
  TableBuilder builder(file->get());
  SLUICE_EXPECT_OK(builder.Add("b", ""));
  EXPECT_FALSE(builder.Add("b", "").ok());
  EXPECT_FALSE(builder.Add("a", "").ok());
}

// Packs the first block of a one-block table with Snappy.
std::string Packed(const std::string& table) {
  std::string_view footer(table.data() + table.size() - kFooterSize,
                          kFooterSize);
  BlockHandle meta, index;
  meta.TakeFrom(&footer);
  std::string block;
  snappy::Compress(table.data(), meta.offset - kBlockTrailer, &block);
  std::string packed = block;
  const auto add_trailer = [&packed](size_t begin, char type) {
    packed.push_back(type);
    AppendFixed32(MaskCrc(Crc32c(packed.substr(begin))), &packed);
  };
  add_trailer(0, kBlockSnappy);
  meta = {packed.size(), 8};
  packed.append(std::string("\0\0\0\0\1\0\0\0", 8));
  add_trailer(meta.offset, kBlockPlain);
  BlockBuilder builder(1);
  std::string handle;
  BlockHandle{0, block.size()}.AppendTo(&handle);
  builder.Add("z", handle);
  const std::string_view contents = builder.Finish();
  index = {packed.size(), contents.size()};
  packed.append(contents);
  add_trailer(index.offset, kBlockPlain);
  std::string end;
  meta.AppendTo(&end);
  index.AppendTo(&end);
  end.resize(kFooterSize - 8);
  AppendFixed64(kTableMagic, &end);
  return packed + end;
}

TEST(Table, ReadsSnappyBlocks) {
  Pairs pairs;
  for (int i = 0; i < 100; ++i) {
    pairs["key" + std::to_string(i)] = "a value that repeats itself";
  }
  const std::string packed = Packed(TableOf(pairs));
  EXPECT_LT(packed.size(), TableOf(pairs).size());
  EXPECT_EQ(PairsOf(packed).value(), pairs);
}

TEST(Table, EveryCutAndEveryBitFlipIsDataLoss) {
  const Pairs pairs = {{"", "header"}, {"one", "1"}, {"other", "2"}};
  const std::string good = TableOf(pairs);
  for (size_t n = 0; n < good.size(); ++n) {
    const absl::Status status = PairsOf(good.substr(0, n)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << n;
  }
  EXPECT_EQ(PairsOf("").status().message(),
            "file is too short to be an sstable");
  EXPECT_EQ(PairsOf(std::string(200, 'x')).status().message(),
            "not an sstable (bad magic number)");
  // The metaindex block and the padding of the footer are not used.
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    const absl::StatusOr<Pairs> found = PairsOf(bad);
    if (found.ok()) {
      EXPECT_EQ(*found, pairs) << bit;
    } else {
      EXPECT_EQ(found.status().code(), absl::StatusCode::kDataLoss) << bit;
    }
  }
}

}  // namespace
}  // namespace sluice
