#include "sluice/base/fingerprint.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

// Values of TensorFlow's StringToHashBucketFast and -Strong.
TEST(Fingerprint, IsTensorFlows) {
  EXPECT_EQ(Fingerprint64(""), 0x9ae16a3b2f90404f);
  EXPECT_EQ(Fingerprint64("a"), 0xb3454265b6df75e3);
  EXPECT_EQ(Fingerprint64("hello"), 0xb48be5a931380ce8);
  EXPECT_EQ(Fingerprint64("Hello, sluice world and more"), 0xa3f0a44a68b97c28);
  EXPECT_EQ(Fingerprint64(std::string(50, 'x')), 0x3ff2e52ef910c925);
  EXPECT_EQ(Fingerprint64(std::string(200, 'x')), 0xc1713bf9d998a3bf);
}

TEST(SipHash, IsTensorFlows) {
  constexpr uint64_t kBuckets = (uint64_t{1} << 62) - 57;
  EXPECT_EQ(SipHash(1, 2, "") % kBuckets, 443797209252341741u);
  EXPECT_EQ(SipHash(1, 2, "hello") % kBuckets, 2957200328589801622u);
  EXPECT_EQ(SipHash(1, 2, "Hello, sluice world and more") % kBuckets,
            2464653798557233966u);
  EXPECT_EQ(SipHash(1, 2, "12345678") % kBuckets, 1897040800951890165u);
}

}  // namespace
}  // namespace sluice
