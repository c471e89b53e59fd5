#include "sluice/numeric/philox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

constexpr float kNormalTolerance = 2e-6f;

template <typename T>
std::vector<T> Last(const std::vector<T>& values, int n) {
  return std::vector<T>(values.end() - n, values.end());
}

// The vectors of the generator's authors.
TEST(Philox, GivesThePublishedBlocks) {
  EXPECT_THAT(Philox(0, 0, 0).At(0),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(Philox(~0ull, ~0ull, ~0ull).At(0),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(
      Philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e).At(0),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Philox, FillsInBulkWhatItGivesBlockByBlock) {
  // Across a carry out of the lowest word, and of the lower half.
  for (const uint64_t low :
       {uint64_t{0}, uint64_t{0xffffffff - 20u}, ~uint64_t{20}}) {
    const Philox stream(5, low, 9);
    std::vector<uint32_t> words(4 * 43);
    stream.Fill(43, words.data());
    for (int block = 0; block < 43; ++block) {
      const Philox::Block want = stream.At(block);
      EXPECT_TRUE(std::equal(want.begin(), want.end(), &words[4 * block]))
          << "block " << block << " from " << low;
      EXPECT_EQ(stream.Skip(block).At(0), want);
    }
  }
}

TEST(Philox, HandsOutWordsInOrder) {
  const Philox stream = Philox::FromSeeds(42, 7);
  PhiloxWords words(stream);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(words.Next(), stream.At(i / 4)[i % 4]);
}

// From here on, the numbers are TensorFlow's for seeds 42 and 7.

TEST(Philox, GivesTheUniformNumbersOfTensorFlow) {
  const Philox stream = Philox::FromSeeds(42, 7);
  std::vector<float> floats(1000003);
  FillUniform(stream, 0, floats.size(), floats.data());
  EXPECT_EQ(floats[0], 0.8627676963806152f);
  EXPECT_EQ(floats[3], 0.9031013250350952f);
  EXPECT_THAT(Last(floats, 4),
              ElementsAre(0.8179991245269775f, 0.8949629068374634f,
                          0.7757538557052612f, 0.4109046459197998f));
  std::vector<double> doubles(500001);
  FillUniform(stream, 0, doubles.size(), doubles.data());
  EXPECT_EQ(doubles[0], 0.9021424253597159);
  EXPECT_THAT(Last(doubles, 4),
              ElementsAre(0.7150579764117115, 0.18007059858694907,
                          0.15117263201251463, 0.15970400865330148));
  std::vector<Half> halves(5);
  FillUniform(stream, 0, halves.size(), halves.data());
  EXPECT_EQ(float(halves[0]), 0.79296875f);
  EXPECT_EQ(float(halves[4]), 0.3125f);
}

TEST(Philox, GivesTheIntegersOfTensorFlow) {
  const Philox stream = Philox::FromSeeds(42, 7);
  std::vector<int32_t> ints(1000003);
  FillUniformInt(stream, int32_t{0}, 77u, 0, ints.size(), ints.data());
  EXPECT_EQ(ints[0], 31);
  EXPECT_THAT(Last(ints, 4), ElementsAre(35, 70, 14, 62));
  std::vector<int64_t> longs(500001);
  FillUniformInt(stream, int64_t{0}, uint64_t{77}, 0, longs.size(),
                 longs.data());
  EXPECT_EQ(longs[0], 52);
  EXPECT_THAT(Last(longs, 4), ElementsAre(56, 11, 42, 49));
}

TEST(Philox, GivesTheNormalNumbersOfTensorFlow) {
  const Philox stream = Philox::FromSeeds(42, 7);
  std::vector<float> floats(1000003);
  FillNormal(stream, 0, floats.size(), floats.data());
  EXPECT_THAT(Last(floats, 4),
              Pointwise(FloatNear(kNormalTolerance),
                        {0.4746488630771637f, -0.46495702862739563f,
                         0.07590118050575256f, -1.0612202882766724f}));
  std::vector<double> doubles(500001);
  FillNormal(stream, 0, doubles.size(), doubles.data());
  EXPECT_THAT(Last(doubles, 4),
              Pointwise(testing::DoubleNear(1e-12),
                        {-0.29908044972743586, 1.5060395571029637,
                         1.0773381241156308, 1.863238688077781}));
}

TEST(Philox, GivesTheTruncatedNormalNumbersOfTensorFlow) {
  const Philox stream = Philox::FromSeeds(42, 7);
  std::vector<float> floats(300007);
  FillTruncatedNormal(stream, 0, floats.size(), floats.data());
  EXPECT_THAT(Last(floats, 4),
              Pointwise(FloatNear(kNormalTolerance),
                        {0.18072104454040527f, 0.1896696388721466f,
                         -0.18319089710712433f, 0.24315278232097626f}));
  // The second of two runs of 257 numbers.
  std::vector<double> doubles(257);
  FillTruncatedNormal(stream.Skip(257 * kPhiloxBlocksPerNumber), 0,
                      doubles.size(), doubles.data());
  EXPECT_THAT(
      Last(doubles, 3),
      Pointwise(testing::DoubleNear(1e-12),
                {0.34173546486828393, -0.653377472833605, 1.6701168647869515}));
}

// Fills 103 numbers at once and in three parts.
template <typename T, typename Fill>
void ExpectPartsMakeTheWhole(Fill fill) {
  std::vector<T> whole(103), parts(103);
  fill(0, 103, whole.data());
  fill(0, 8, parts.data());
  fill(8, 44, parts.data() + 8);
  fill(52, 51, parts.data() + 52);
  EXPECT_EQ(whole, parts);
}

TEST(Philox, GivesTheSameNumbersInParts) {
  const Philox s = Philox::FromSeeds(1, 2);
  ExpectPartsMakeTheWhole<float>(
      [&](int64_t at, int64_t n, float* out) { FillUniform(s, at, n, out); });
  ExpectPartsMakeTheWhole<double>(
      [&](int64_t at, int64_t n, double* out) { FillUniform(s, at, n, out); });
  ExpectPartsMakeTheWhole<float>(
      [&](int64_t at, int64_t n, float* out) { FillNormal(s, at, n, out); });
  ExpectPartsMakeTheWhole<double>(
      [&](int64_t at, int64_t n, double* out) { FillNormal(s, at, n, out); });
  ExpectPartsMakeTheWhole<float>([&](int64_t at, int64_t n, float* out) {
    FillTruncatedNormal(s, at, n, out);
  });
  ExpectPartsMakeTheWhole<double>([&](int64_t at, int64_t n, double* out) {
    FillTruncatedNormal(s, at, n, out);
  });
  ExpectPartsMakeTheWhole<int64_t>([&](int64_t at, int64_t n, int64_t* out) {
    FillUniformInt(s, int64_t{-5}, uint64_t{1000}, at, n, out);
  });
}

}  // namespace
}  // namespace sluice
