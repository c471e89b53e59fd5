#include "sluice/base/copy_past_caches.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(CopyPastCaches, CopiesThatAndNothingElse) {
  std::string source(400, ' ');
  for (size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<char>(i * 7 + 1);
  }
  for (const size_t size : {0, 1, 15, 63, 64, 65, 127, 128, 200, 300}) {
    for (size_t from = 0; from < 20; from += 3) {
      for (size_t to = 0; to < 70; ++to) {
        std::string copy(400, '-');
        std::string expected = copy;
        expected.replace(to, size, source, from, size);
        CopyPastCaches(copy.data() + to, source.data() + from, size);
        ASSERT_EQ(copy, expected) << size << " " << from << " " << to;
      }
    }
  }
}

}  // namespace
}  // namespace sluice
