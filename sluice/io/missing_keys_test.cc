#include "sluice/io/missing_keys.h"

#include <gmock/gmock.h>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NearMatches, AreSlipsAndOtherScopes) {
  const std::vector<std::string> present = {
      "dense/bias", "dense/kernel", "global_step", "model/dense_1/kernel", "w"};
  EXPECT_THAT(NearMatches("dense/kernal", present),
              ElementsAre("dense/kernel"));
  EXPECT_THAT(NearMatches("dense_1/kernel", present),
              ElementsAre("model/dense_1/kernel", "dense/kernel"));
  EXPECT_THAT(NearMatches("model/dense/kernel", present),
              ElementsAre("dense/kernel", "model/dense_1/kernel"));
  EXPECT_THAT(NearMatches("globalstep", present), ElementsAre("global_step"));
  EXPECT_THAT(NearMatches("v", present), IsEmpty());
  EXPECT_THAT(NearMatches("nothing/like/it", present), IsEmpty());
}

}  // namespace
}  // namespace sluice
