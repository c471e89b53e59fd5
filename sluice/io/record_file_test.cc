#include "sluice/io/record_file.h"

#include <gmock/gmock.h>

#include "absl/strings/escaping.h"
#include "sluice/base/memory_file_system.h"
#include "sluice/io/testing/golden.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> ReadAllRecords(FileSystem& files,
                                        const std::string& path,
                                        Compression compression,
                                        absl::Status* status) {
  std::vector<std::string> records;
  auto reader = RecordReader::Open(files, path, compression);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::string record;
  while (true) {
    const absl::StatusOr<bool> found = (*reader)->Read(&record);
    *status = found.status();
    if (!found.ok() || !*found) return records;
    records.push_back(record);
  }
}

TEST(RecordFile, GivesTheBytesOfTheFormat) {
  MemoryFileSystem files;
  auto writer = RecordWriter::Open(files, "f");
  SLUICE_EXPECT_OK((*writer)->Write("hello"));
  SLUICE_EXPECT_OK((*writer)->Close());
  EXPECT_EQ(absl::BytesToHexString(Contents(files, "f")),
            "0500000000000000eab2043e68656c6c6fbb1f1c19");
}

TEST(RecordFile, ReadsWhatTensorFlowWrote) {
  std::vector<std::string> expected = {"hello", "", "", std::string(1000, 'x'),
                                       "é"};
  for (int i = 0; i < 10; ++i) expected[2] += std::string("\0\xff", 2);
  for (int i = 0; i < 20; ++i) {
    expected.push_back("record " + std::to_string(i));
  }
  for (const auto& [name, compression] :
       {std::pair("plain", Compression::kNone),
        std::pair("gzip", Compression::kGzip),
        std::pair("zlib", Compression::kZlib)}) {
    absl::Status status;
    EXPECT_EQ(ReadAllRecords(RealFileSystem(),
                             GoldenEvents(std::string(name) + ".tfrecord"),
                             compression, &status),
              expected);
    SLUICE_EXPECT_OK(status);
  }
  MemoryFileSystem files;
  auto writer = RecordWriter::Open(files, "f");
  for (const std::string& record : expected) {
    SLUICE_EXPECT_OK((*writer)->Write(record));
  }
  SLUICE_EXPECT_OK((*writer)->Close());
  EXPECT_EQ(Contents(files, "f"),
            Contents(RealFileSystem(), GoldenEvents("plain.tfrecord")));
}

TEST(RecordFile, ReadsBackWhatItWroteInEveryCompression) {
  std::vector<std::string> records;
  for (int i = 0; i < 300; ++i) {
    records.push_back(std::string(i * 17, static_cast<char>(i)));
  }
  records.push_back(std::string(3'000'000, 'y'));
  for (Compression compression :
       {Compression::kNone, Compression::kZlib, Compression::kGzip}) {
    MemoryFileSystem files;
    auto writer = RecordWriter::Open(files, "f", compression);
    for (const std::string& record : records) {
      SLUICE_EXPECT_OK((*writer)->Write(record));
      if (record.size() == 170) SLUICE_EXPECT_OK((*writer)->Flush());
    }
    SLUICE_EXPECT_OK((*writer)->Close());
    absl::Status status;
    EXPECT_EQ(ReadAllRecords(files, "f", compression, &status), records);
    SLUICE_EXPECT_OK(status);
  }
}

TEST(RecordFile, GzipFilesPutEndToEndAreOne) {
  MemoryFileSystem files;
  auto writer = RecordWriter::Open(files, "f", Compression::kGzip);
  SLUICE_EXPECT_OK((*writer)->Write("one"));
  SLUICE_EXPECT_OK((*writer)->Close());
  const std::string once = Contents(files, "f");
  SLUICE_EXPECT_OK(files.WriteFile("f", once + once));
  absl::Status status;
  EXPECT_THAT(ReadAllRecords(files, "f", Compression::kGzip, &status),
              ::testing::ElementsAre("one", "one"));
  SLUICE_EXPECT_OK(status);
}

TEST(RecordFile, EveryCutAndEveryBitFlipIsDataLoss) {
  MemoryFileSystem files;
  auto writer = RecordWriter::Open(files, "f");
  SLUICE_EXPECT_OK((*writer)->Write("first"));
  SLUICE_EXPECT_OK((*writer)->Write("second"));
  SLUICE_EXPECT_OK((*writer)->Close());
  const std::string good = Contents(files, "f");
  const size_t border = 12 + 5 + 4;
  absl::Status status;
  for (size_t n = 1; n < good.size(); ++n) {
    SLUICE_EXPECT_OK(files.WriteFile("f", good.substr(0, n)));
    ReadAllRecords(files, "f", Compression::kNone, &status);
    if (n == border) {
      SLUICE_EXPECT_OK(status);
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << n;
      EXPECT_EQ(status.message(), n < border ? "truncated record at 0"
                                             : "truncated record at 21");
    }
  }
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    SLUICE_EXPECT_OK(files.WriteFile("f", bad));
    ReadAllRecords(files, "f", Compression::kNone, &status);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bit;
    EXPECT_THAT(std::string(status.message()), HasSubstr("corrupted record"));
  }
}

TEST(RecordFile, CompressedFilesThatEndEarlyAreDataLoss) {
  for (const auto& [name, compression] :
       {std::pair("gzip", Compression::kGzip),
        std::pair("zlib", Compression::kZlib)}) {
    const std::string good = Contents(
        RealFileSystem(), GoldenEvents(std::string(name) + ".tfrecord"));
    MemoryFileSystem files;
    absl::Status status;
    for (size_t n = 1; n < good.size(); ++n) {
      SLUICE_EXPECT_OK(files.WriteFile("f", good.substr(0, n)));
      ReadAllRecords(files, "f", compression, &status);
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << n;
    }
  }
}

TEST(RecordFile, AReaderFollowsAFileThatGrows) {
  MemoryFileSystem files;
  auto writer = RecordWriter::Open(files, "whole");
  SLUICE_EXPECT_OK((*writer)->Write("first"));
  SLUICE_EXPECT_OK((*writer)->Write("second"));
  const std::string whole = Contents(files, "whole");
  auto file = files.NewWritable("f");
  auto reader = RecordReader::Open(files, "f");
  std::string record;
  EXPECT_FALSE((*reader)->Read(&record).value());
  SLUICE_EXPECT_OK((*file)->Append(whole.substr(0, 25)));
  EXPECT_TRUE((*reader)->Read(&record).value());
  EXPECT_EQ((*reader)->Read(&record).status().message(),
            "truncated record at 21");
  SLUICE_EXPECT_OK((*file)->Append(whole.substr(25)));
  EXPECT_TRUE((*reader)->Read(&record).value());
  EXPECT_EQ(record, "second");
  EXPECT_FALSE((*reader)->Read(&record).value());
  SLUICE_EXPECT_OK((*reader)->Seek(0));
  EXPECT_TRUE((*reader)->Read(&record).value());
  EXPECT_EQ(record, "first");
}

TEST(RecordFile, UnknownCompressionIsAnError) {
  EXPECT_EQ(ParseCompression("GZIP").value(), Compression::kGzip);
  EXPECT_EQ(ParseCompression("zip").status().message(),
            "Unsupported compression_type: zip.");
}

}  // namespace
}  // namespace sluice
