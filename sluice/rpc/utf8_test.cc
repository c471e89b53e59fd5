#include "sluice/rpc/utf8.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Utf8, LeavesCharactersAndShowsOtherBytes) {
  for (const char* text :
       {"", "plain", "caf\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
        "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(Utf8(text), text);
  }
  EXPECT_EQ(Utf8("caf\xe9!"), "caf\\xe9!");
  EXPECT_EQ(Utf8("\xc3"), "\\xc3");           // Ends too early.
  EXPECT_EQ(Utf8("\x80"), "\\x80");           // Begins too late.
  EXPECT_EQ(Utf8("\xc0\xaf"), "\\xc0\\xaf");  // Longer than needed.
  EXPECT_EQ(Utf8("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(Utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // Half a pair.
  EXPECT_EQ(Utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(Utf8("\xff\xc3\xa9"), "\\xff\xc3\xa9");
}

}  // namespace
}  // namespace sluice
