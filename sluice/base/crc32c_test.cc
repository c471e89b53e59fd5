#include "sluice/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

std::string Bytes(size_t n) {
  std::string bytes(n, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

TEST(Crc32c, GivesTheKnownValues) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(MaskCrc(Crc32c("123456789")), 0xc78ab0e5u);
  EXPECT_EQ(UnmaskCrc(0xc78ab0e5u), 0xe3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(MaskCrc(0), 0xa282ead8u);
  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(Crc32c, AllWaysToSumAgree) {
  const std::string bytes = Bytes(60001);
  for (size_t n :
       {0, 1, 7, 8, 255, 767, 768, 769, 24575, 24576, 25600, 60000}) {
    // An odd start, so that no word is aligned.
    const std::string_view part(bytes.data() + 1, n);
    const uint32_t crc = Crc32cExtendPortableForTest(0, part);
    EXPECT_EQ(Crc32c(part), crc) << n;
    const size_t cut = n / 3;
    const std::string_view a = part.substr(0, cut), b = part.substr(cut);
    EXPECT_EQ(Crc32cExtend(Crc32c(a), b), crc) << n;
    EXPECT_EQ(Crc32cCombine(Crc32c(a), Crc32c(b), b.size()), crc) << n;
  }
}

}  // namespace
}  // namespace sluice
