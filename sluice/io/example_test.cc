#include "sluice/io/example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/io/example_wire.h"
#include "sluice/proto/example.pb.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TEST(ExampleBuilder, WritesWhatProtobufReads) {
  const std::string bytes = ExampleBuilder()
                                .Ints("i", {1, -1, int64_t{1} << 40})
                                .Floats("f", {0.5, -2})
                                .Strings("s", {"a", ""})
                                .Ints("none", {})
                                .Floats("again", {1})
                                .Floats("again", {2})
                                .Serialize();
  pb::Example example;
  ASSERT_TRUE(example.ParseFromString(bytes));
  const auto& features = example.features().feature();
  ASSERT_EQ(features.size(), 5u);
  EXPECT_THAT(features.at("i").int64_list().value(),
              ElementsAre(1, -1, int64_t{1} << 40));
  EXPECT_THAT(features.at("f").float_list().value(), ElementsAre(0.5, -2));
  EXPECT_THAT(features.at("s").bytes_list().value(), ElementsAre("a", ""));
  EXPECT_TRUE(features.at("none").has_int64_list());
  EXPECT_THAT(features.at("again").float_list().value(), ElementsAre(2));
}

TEST(ExampleWire, ReadsPackedAndSingleNumbers) {
  // value: 1.0 and value: 5, each as a field of its own.
  const std::string floats("\x12\x05\x0d\x00\x00\x80\x3f", 7);
  const std::string ints("\x1a\x02\x08\x05", 4);
  FeatureValues values;
  ASSERT_TRUE(DecodeFeature(floats, &values));
  EXPECT_THAT(values.floats, ElementsAre(1.0f));
  ASSERT_TRUE(DecodeFeature(ints, &values));
  EXPECT_THAT(values.ints, ElementsAre(5));
  EXPECT_TRUE(values.floats.empty());
  ASSERT_TRUE(DecodeFeature("", &values));
  EXPECT_EQ(values.dtype, DType::kInvalid);
}

TEST(ExampleWire, RefusesWhatEndsTooEarly) {
  const std::string bytes =
      ExampleBuilder().Ints("k", {1, 300}).Strings("s", {"abc"}).Serialize();
  FeatureValues values;
  const auto visit = [&](std::string_view, std::string_view feature) {
    return DecodeFeature(feature, &values);
  };
  EXPECT_TRUE(VisitExample(bytes, visit));
  for (size_t n = 1; n < bytes.size(); ++n) {
    EXPECT_FALSE(VisitExample(bytes.substr(0, n), visit)) << n;
  }
}

}  // namespace
}  // namespace sluice
