#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

struct Sets {
  Tensor indices, values, shape;
};

absl::StatusOr<Sets> Apply(const std::string& operation, const Tensor& a,
                           const Tensor& b) {
  OpTest op("DenseToDenseSetOperation");
  op.Attr("set_operation", operation);
  op.AddInput(a);
  op.AddInput(b);
  SLUICE_RETURN_IF_ERROR(op.Run());
  return Sets{op.output(0), op.output(1), op.output(2)};
}

TEST(DenseToDenseSetOperation, WorksOnEachRow) {
  const Tensor a = Tensor::Of<int32_t>({2, 3}, {3, 1, 1, -5, 6, 7});
  const Tensor b = Tensor::Of<int32_t>({2, 2}, {1, 2, 7, 8});
  const Sets minus = *Apply("a-b", a, b);
  ExpectClose(minus.values, Tensor::Of<int32_t>({3}, {3, -5, 6}));
  ExpectClose(minus.indices, Tensor::Of<int64_t>({3, 2}, {0, 0, 1, 0, 1, 1}));
  ExpectClose(minus.shape, Tensor::Of<int64_t>({2}, {2, 2}));
  ExpectClose(Apply("b-a", a, b)->values, Tensor::Of<int32_t>({2}, {2, 8}));
  ExpectClose(Apply("intersection", a, b)->values,
              Tensor::Of<int32_t>({2}, {1, 7}));
  ExpectClose(Apply("union", a, b)->values,
              Tensor::Of<int32_t>({7}, {1, 2, 3, -5, 6, 7, 8}));
}

TEST(DenseToDenseSetOperation, TakesStringsAndBytes) {
  EXPECT_TRUE(
      TensorsEqual(Apply("union", Tensor::Of<std::string>({1, 2}, {"b", "a"}),
                         Tensor::Of<std::string>({1, 1}, {"c"}))
                       ->values,
                   Tensor::Of<std::string>({3}, {"a", "b", "c"})));
  ExpectClose(Apply("a-b", Tensor::Of<uint8_t>({1, 2}, {200, 1}),
                    Tensor::Of<uint8_t>({1, 1}, {1}))
                  ->values,
              Tensor::Of<uint8_t>({1}, {200}));
}

TEST(DenseToDenseSetOperation, WrongInputsAreNamed) {
  const Tensor row = Tensor::Of<int32_t>({1, 2}, {1, 2});
  EXPECT_THAT(Apply("xor", row, row).status().message(),
              testing::HasSubstr("Invalid set_operation xor"));
  EXPECT_THAT(
      Apply("a-b", row, Tensor::Of<int32_t>({2, 1}, {1, 2})).status().message(),
      testing::HasSubstr("Mismatched group shapes"));
  EXPECT_THAT(
      Apply("a-b", row, Tensor::Of<int32_t>({2}, {1, 2})).status().message(),
      testing::HasSubstr("same rank"));
}

}  // namespace
}  // namespace sluice
