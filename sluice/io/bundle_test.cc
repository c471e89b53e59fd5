// Checkpoints of real TensorFlow, read and written again.
#include <gmock/gmock.h>

#include <charconv>
#include <fstream>

#include "absl/strings/escaping.h"
#include "sluice/base/memory_file_system.h"
#include "sluice/io/bundle_reader.h"
#include "sluice/io/bundle_writer.h"
#include "sluice/io/testing/golden.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// A line of values.tsv.
struct ExpectedTensor {
  std::string checkpoint;
  std::string name;
  Tensor value;
};

std::vector<ExpectedTensor> ExpectedTensors() {
  std::vector<ExpectedTensor> expected;
  std::ifstream file(GoldenCheckpoint("values.tsv"));
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = Split(line, '\t');
    const DType dtype = ParseDType(fields[2]);
    Shape shape;
    for (const std::string& dim : Split(fields[3], ',')) {
      if (!dim.empty()) shape.AddDim(std::stoll(dim));
    }
    Tensor value(dtype, shape);
    const std::vector<std::string> elements = Split(fields[4], ',');
    if (dtype == DType::kString) {
      for (int64_t i = 0; i < value.size(); ++i) {
        value.mutable_data<std::string>()[i] =
            absl::HexStringToBytes(elements[i]);
      }
    } else {
      const std::string bytes = absl::HexStringToBytes(fields[4]);
      EXPECT_EQ(bytes.size(), value.bytes());
      std::copy(bytes.begin(), bytes.end(),
                static_cast<char*>(value.mutable_raw()));
    }
    expected.push_back({fields[0], fields[1], value});
  }
  return expected;
}

TEST(Bundle, ReadsTheValuesTensorFlowWrote) {
  const std::vector<ExpectedTensor> expected = ExpectedTensors();
  EXPECT_EQ(expected.size(), 129u);
  for (const ExpectedTensor& tensor : expected) {
    std::string prefix = GoldenCheckpoint(tensor.checkpoint);
    if (tensor.checkpoint == "v1_legacy") prefix += ".ckpt";
    auto reader = CheckpointReader::Open(RealFileSystem(), prefix);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const absl::StatusOr<CheckpointTensor> info = (*reader)->Find(tensor.name);
    ASSERT_TRUE(info.ok()) << tensor.checkpoint << info.status();
    EXPECT_EQ(info->dtype, tensor.value.dtype()) << tensor.name;
    EXPECT_EQ(info->shape, tensor.value.shape()) << tensor.name;
    const absl::StatusOr<Tensor> value = (*reader)->Lookup(tensor.name);
    ASSERT_TRUE(value.ok()) << tensor.name << value.status();
    EXPECT_TRUE(TensorsEqual(*value, tensor.value)) << tensor.name;
  }
}

// Reads a bundle entry by entry and writes the same again, to `prefix`.
void Rewrite(const std::string& golden, int shard, FileSystem& files,
             const std::string& prefix) {
  const auto index = ReadBundleIndex(RealFileSystem(), golden);
  ASSERT_TRUE(index.ok()) << index.status();
  auto reader = BundleReader::Open(RealFileSystem(), golden);
  ASSERT_TRUE(reader.ok()) << reader.status();
  struct Item {
    int64_t offset;
    std::string name;
    TensorSlice slice;
    Shape full;
    bool sliced;
  };
  std::vector<Item> items;
  for (const auto& [key, entry] : index->entries) {
    if (!IsTensorKey(key)) continue;
    const Shape full = ShapeFromProto(entry.shape()).value();
    if (entry.slices().empty() && entry.shard_id() == shard) {
      items.push_back({entry.offset(), key, {}, full, false});
    }
    for (const auto& proto : entry.slices()) {
      const TensorSlice slice = TensorSlice::FromProto(proto).value();
      const auto& part = index->entries.at(SliceKey(key, slice));
      if (part.shard_id() == shard) {
        items.push_back({part.offset(), key, slice, full, true});
      }
    }
  }
  std::stable_sort(
      items.begin(), items.end(),
      [](const Item& a, const Item& b) { return a.offset < b.offset; });
  BundleWriter writer(files, prefix);
  for (const Item& item : items) {
    if (item.sliced) {
      const auto part = (*reader)->LookupSlice(item.name, item.slice);
      ASSERT_TRUE(part.ok()) << part.status();
      SLUICE_ASSERT_OK(
          writer.AddSlice(item.name, item.full, item.slice, *part));
    } else {
      const auto tensor = (*reader)->Lookup(item.name);
      ASSERT_TRUE(tensor.ok()) << tensor.status();
      SLUICE_ASSERT_OK(writer.Add(item.name, *tensor));
    }
  }
  SLUICE_ASSERT_OK(writer.Finish());
}

TEST(Bundle, WritesTheBytesTensorFlowWrites) {
  for (const char* name :
       {"dtypes", "large", "many_keys", "partitioned-1", "quantised", "slices",
        "tf2_object", "training/model.ckpt-8", "training/model.ckpt-12"}) {
    MemoryFileSystem files;
    Rewrite(GoldenCheckpoint(name), 0, files, "c");
    EXPECT_THAT(files.List(".").value(),
                ElementsAre("c.data-00000-of-00001", "c.index"));
    for (const char* suffix : {".index", ".data-00000-of-00001"}) {
      EXPECT_TRUE(Contents(files, std::string("c") + suffix) ==
                  Contents(RealFileSystem(), GoldenCheckpoint(name) + suffix))
          << name << suffix;
    }
  }
}

TEST(Bundle, MergesShardsAsTensorFlowDoes) {
  MemoryFileSystem files;
  const std::string golden = GoldenCheckpoint("sharded");
  const std::vector<std::string> parts = {"c_temp_ab/part-00000-of-00002",
                                          "c_temp_ab/part-00001-of-00002"};
  Rewrite(golden, 0, files, parts[0]);
  Rewrite(golden, 1, files, parts[1]);
  SLUICE_ASSERT_OK(MergeBundles(files, parts, "c", /*delete_old=*/true));
  EXPECT_THAT(
      files.List(".").value(),
      ElementsAre("c.data-00000-of-00002", "c.data-00001-of-00002", "c.index"));
  for (const char* suffix :
       {".index", ".data-00000-of-00002", ".data-00001-of-00002"}) {
    EXPECT_EQ(Contents(files, std::string("c") + suffix),
              Contents(RealFileSystem(), golden + suffix))
        << suffix;
  }
}

TEST(Bundle, MergingPartsThatDisagreeChangesNothing) {
  MemoryFileSystem files;
  for (const char* prefix : {"a", "b"}) {
    BundleWriter writer(files, prefix);
    SLUICE_EXPECT_OK(writer.Add("v", Tensor::Scalar<float>(1)));
    SLUICE_EXPECT_OK(writer.Finish());
  }
  EXPECT_THAT(std::string(MergeBundles(files, {"a", "b"}, "c", true).message()),
              HasSubstr("Two parts"));
  EXPECT_EQ(MergeBundles(files, {"a", "x"}, "c", true).code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(MergeBundles(files, {}, "c", true).ok());
  EXPECT_EQ(files.List(".")->size(), 4u);
}

TEST(Bundle, ListsTensorsByName) {
  auto reader =
      CheckpointReader::Open(RealFileSystem(), GoldenCheckpoint("slices"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  const auto list = (*reader)->List();
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 17u);
  EXPECT_EQ(list->front().name, "cols");
  EXPECT_EQ(list->front().shape, Shape({2, 6}));
  EXPECT_EQ(list->back().name, "w");
  EXPECT_EQ(list->back().dtype, DType::kInt32);
  EXPECT_TRUE((*reader)->Contains("full"));
  EXPECT_FALSE((*reader)->Contains("fu"));
  EXPECT_FALSE((*reader)->Contains(""));
  EXPECT_FALSE((*reader)->Contains(
      SliceKey("w", TensorSlice::Parse("0,5:0,20").value())));
}

TEST(Bundle, AnySliceComesFromAnyPartition) {
  MemoryFileSystem files;
  Tensor whole(DType::kInt32, {6, 4});
  for (int i = 0; i < 24; ++i) whole.mutable_data<int32_t>()[i] = i;
  const auto part = [&](const char* text) {
    const TensorSlice slice = TensorSlice::Parse(text).value();
    Tensor tensor(DType::kInt32, slice.ShapeWithin(whole.shape()).value());
    CopyRegion(slice.Resolved(whole.shape()), whole,
               TensorSlice::Full(2).Resolved(whole.shape()),
               slice.Resolved(whole.shape()), &tensor);
    return tensor;
  };
  BundleWriter writer(files, "c");
  const Shape full = whole.shape();
  for (const char* text : {"0,2:-", "2,4:0,1", "2,4:1,3"}) {
    SLUICE_EXPECT_OK(writer.AddSlice(
        "parts", full, TensorSlice::Parse(text).value(), part(text)));
  }
  SLUICE_EXPECT_OK(writer.AddSlice(
      "hole", full, TensorSlice::Parse("0,2:-").value(), part("0,2:-")));
  SLUICE_EXPECT_OK(writer.Add("whole", whole));
  SLUICE_EXPECT_OK(writer.Finish());
  auto reader = CheckpointReader::Open(files, "c");
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const char* name : {"parts", "whole"}) {
    EXPECT_TRUE(TensorsEqual((*reader)->Lookup(name).value(), whole));
    for (const char* text : {"0,2:-", "1,3:0,4", "5,1:3,1", "0,6:1,2", "-:-"}) {
      const auto got =
          (*reader)->LookupSlice(name, TensorSlice::Parse(text).value());
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(TensorsEqual(*got, part(text))) << text;
    }
  }
  EXPECT_TRUE(
      (*reader)->LookupSlice("hole", TensorSlice::Parse("1,1:-").value()).ok());
  EXPECT_EQ((*reader)->Lookup("hole").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Bundle, RestoreChecksTypeAndShape) {
  auto reader =
      CheckpointReader::Open(RealFileSystem(), GoldenCheckpoint("slices"));
  const auto error = [&](const char* name, const char* spec, DType dtype) {
    return std::string(
        (*reader)->Restore(name, spec, dtype).status().message());
  };
  EXPECT_EQ((*reader)->Restore("w", "10 20 3,4:-", DType::kInt32)->shape(),
            Shape({4, 20}));
  EXPECT_EQ(error("zz", "", DType::kFloat), "Key zz not found in checkpoint");
  EXPECT_EQ(error("w", "", DType::kFloat),
            "tensor_name = w; expected dtype float does not equal original "
            "dtype int32");
  EXPECT_EQ(error("w", "10 21 3,4:-", DType::kInt32),
            "tensor_name = w; shape in shape_and_slice spec [10,21] does not "
            "match the shape stored in checkpoint: [10,20]");
}

TEST(Bundle, ReadsIntoMemoryThatIsThere) {
  auto reader =
      BundleReader::Open(RealFileSystem(), GoldenCheckpoint("partitioned-1"));
  for (const char* name : {"part/single", "part/emb"}) {
    Tensor target(DType::kFloat, (*reader)->Find(name)->shape);
    const void* const memory = target.raw();
    SLUICE_EXPECT_OK((*reader)->ReadInto(name, &target));
    EXPECT_EQ(target.raw(), memory);
    EXPECT_TRUE(TensorsEqual(target, (*reader)->Lookup(name).value()));
  }
  Tensor wrong(DType::kFloat, {4});
  EXPECT_EQ((*reader)->ReadInto("part/single", &wrong).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Bundle, LargeTensorsAreReadInPartsAndChecked) {
  MemoryFileSystem files;
  Tensor large(DType::kInt32, {5'000'001});
  for (int64_t i = 0; i < large.size(); ++i) {
    large.mutable_data<int32_t>()[i] = static_cast<int32_t>(i * 2654435761u);
  }
  BundleWriter writer(files, "c");
  SLUICE_EXPECT_OK(writer.Add("x", Tensor::Scalar<int8_t>(1)));
  SLUICE_EXPECT_OK(writer.Add("large", large));
  SLUICE_EXPECT_OK(writer.Finish());
  auto reader = BundleReader::Open(files, "c");
  EXPECT_TRUE(TensorsEqual((*reader)->Lookup("large").value(), large));
  std::string data = Contents(files, "c.data-00000-of-00001");
  data[12'345'678] ^= 4;
  SLUICE_EXPECT_OK(files.WriteFile("c.data-00000-of-00001", data));
  EXPECT_EQ((*reader)->Lookup("large").status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(Bundle, RefusesWhatItCannotHold) {
  MemoryFileSystem files;
  const Tensor one = Tensor::Scalar<float>(1);
  const auto error = [&](auto add) {
    BundleWriter writer(files, "c");
    const absl::Status status = add(writer);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(writer.Finish(), status);
    return std::string(status.message());
  };
  EXPECT_EQ(error([&](BundleWriter& writer) {
              SLUICE_EXPECT_OK(writer.Add("a", one));
              return writer.Add("a", one);
            }),
            "Adding duplicate key: a");
  EXPECT_THAT(error([&](BundleWriter& writer) { return writer.Add("", one); }),
              HasSubstr("needs a name"));
  EXPECT_THAT(error([&](BundleWriter& writer) {
                return writer.Add("a", Tensor(DType::kResource, {}));
              }),
              HasSubstr("resource"));
  EXPECT_THAT(
      error([&](BundleWriter& writer) { return writer.Add("a", Tensor()); }),
      HasSubstr("no value"));
  EXPECT_THAT(error([&](BundleWriter& writer) {
                return writer.AddSlice("a", {2}, TensorSlice::Full(1), one);
              }),
              HasSubstr("has shape [2]"));
  EXPECT_THAT(
      error([&](BundleWriter& writer) {
        SLUICE_EXPECT_OK(writer.AddSlice(
            "a", {2}, TensorSlice::Parse("0,1").value(), one.Reshaped({1})));
        return writer.AddSlice("a", {3}, TensorSlice::Parse("1,1").value(),
                               one.Reshaped({1}));
      }),
      HasSubstr("disagree"));
  EXPECT_TRUE(files.List(".")->empty());
}

TEST(Bundle, MakesTheLastDirectoryOnly) {
  MemoryFileSystem files;
  BundleWriter made(files, "dir/c");
  SLUICE_EXPECT_OK(made.Add("a", Tensor::Scalar<float>(1)));
  SLUICE_EXPECT_OK(made.Finish());
  BundleWriter refused(files, "no/dir/c");
  EXPECT_EQ(refused.Finish().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace sluice
