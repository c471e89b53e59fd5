#include "sluice/base/hash.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Hash64, GivesTensorFlowsVectors) {
  EXPECT_EQ(Hash64(""), 0x81769421199f9e3bull);
  EXPECT_EQ(Hash64("while/while_context"), 0xbff3656e447e77d6ull);
  EXPECT_EQ(Hash64(";0;while/while_context"), 0x14c36a76ebc7ef86ull);
}

}  // namespace
}  // namespace sluice
