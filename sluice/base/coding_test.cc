#include "sluice/base/coding.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Coding, VarintsGoBothWays) {
  for (uint64_t value :
       {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128}, uint64_t{300},
        uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}}) {
    std::string bytes;
    AppendVarint(value, &bytes);
    std::string_view rest = bytes;
    uint64_t back;
    ASSERT_TRUE(TakeVarint64(&rest, &back));
    EXPECT_EQ(back, value);
    EXPECT_TRUE(rest.empty());
    rest = bytes;
    uint32_t narrow;
    EXPECT_EQ(TakeVarint32(&rest, &narrow), value < uint64_t{1} << 32);
  }
}

TEST(Coding, VarintsThatDoNotEndOrFitAreRefused) {
  uint64_t value;
  for (const std::string& bytes :
       {std::string(), std::string("\x80"), std::string(10, '\xff'),
        std::string(9, '\xff') + "\x02"}) {
    std::string_view rest = bytes;
    EXPECT_FALSE(TakeVarint64(&rest, &value));
  }
}

TEST(Coding, FixedNumbersAreLittleEndian) {
  std::string bytes;
  AppendFixed32(0x01020304, &bytes);
  AppendFixed64(5, &bytes);
  EXPECT_EQ(bytes, std::string("\4\3\2\1\5\0\0\0\0\0\0\0", 12));
  EXPECT_EQ(LoadFixed32(bytes.data()), 0x01020304u);
  EXPECT_EQ(LoadFixed64(bytes.data() + 4), 5u);
}

}  // namespace
}  // namespace sluice
