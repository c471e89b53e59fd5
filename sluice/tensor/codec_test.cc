#include "sluice/tensor/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "google/protobuf/text_format.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

pb::TensorProto ProtoOf(const std::string& text) {
  pb::TensorProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto));
  return proto;
}

absl::StatusOr<Tensor> Decode(const std::string& text) {
  return TensorFromProto(ProtoOf(text));
}

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<Tensor> tensor = Decode(text);
  return tensor.ok() ? "no error" : std::string(tensor.status().message());
}

std::vector<Tensor> OneOfEachType() {
  return {
      Tensor::Vector<float>({1.5f, -2}),
      Tensor::Vector<double>({1e300, -0.0}),
      Tensor::Vector<int32_t>({-5, 7}),
      Tensor::Vector<uint8_t>({255, 1}),
      Tensor::Vector<int16_t>({-300, 1}),
      Tensor::Vector<int8_t>({-128, 1}),
      Tensor::Vector<std::string>({"", std::string(300, 'x')}),
      Tensor::Vector<std::complex<float>>({{1, 2}, {3, 4}}),
      Tensor::Vector<int64_t>({int64_t{-1} << 60, 1}),
      Tensor::Vector<bool>({true, false}),
      Tensor::Vector<uint8_t>({255, 1}).Bitcast(DType::kQuint8),
      Tensor::Vector<int32_t>({-5, 7}).Bitcast(DType::kQint32),
      Tensor::Vector<int16_t>({-5, 7}).Bitcast(DType::kQint16),
      Tensor::Vector<uint16_t>({65535, 7}).Bitcast(DType::kQuint16),
      Tensor::Vector<int8_t>({-5, 7}).Bitcast(DType::kQint8),
      Tensor::Vector<BFloat16>({BFloat16(-1.5f), BFloat16(2)}),
      Tensor::Vector<uint16_t>({65535, 1}),
      Tensor::Vector<std::complex<double>>({{1, 2}, {3, 4}}),
      Tensor::Vector<Half>({Half(-0.5f), Half(2)}),
      Tensor::Vector<uint32_t>({0xffffffffu, 1}),
      Tensor::Vector<uint64_t>({~uint64_t{0}, 1}),
      Tensor::Vector<ResourceHandle>({{.device = "/job:ps/task:0",
                                       .container = "c",
                                       .name = "v",
                                       .type_hash = 42,
                                       .type_name = "Var",
                                       .value_dtype = DType::kFloat,
                                       .value_shape = PartialShape({-1, 3})},
                                      {}}),
  };
}

TEST(TensorCodec, GivesTheBytesOfTheWire) {
  pb::TensorProto proto;
  TensorToProto(Tensor::Vector<float>({1, 2}), &proto);
  EXPECT_EQ(absl::BytesToHexString(proto.SerializeAsString()),
            "0801120412020802220800"
            "00803f00000040");
  TensorToProto(Tensor::Scalar<int32_t>(7), &proto);
  EXPECT_EQ(absl::BytesToHexString(proto.SerializeAsString()),
            "08031200220407000000");
}

TEST(TensorCodec, EveryTypeSurvivesBothForms) {
  for (const Tensor& vector : OneOfEachType()) {
    Tensor empty(vector.dtype(), {0, 3});
    for (const Tensor& tensor : {vector, vector.Reshaped({2, 1}), empty}) {
      pb::TensorProto raw, typed;
      TensorToProto(tensor, &raw);
      TensorToTypedProto(tensor, &typed);
      for (const pb::TensorProto& proto : {raw, typed}) {
        const absl::StatusOr<Tensor> decoded = TensorFromProto(proto);
        ASSERT_TRUE(decoded.ok()) << decoded.status();
        EXPECT_TRUE(TensorsEqual(*decoded, tensor)) << proto.DebugString();
      }
    }
  }
}

TEST(TensorCodec, TypedFormIsThatOfPythonsConstants) {
  for (const Tensor& tensor : OneOfEachType()) {
    pb::TensorProto proto;
    TensorToTypedProto(tensor, &proto);
    const bool raw =
        tensor.dtype() != DType::kUint16 &&
        (IsInteger(tensor.dtype()) || IsQuantized(tensor.dtype()) ||
         tensor.dtype() == DType::kFloat || tensor.dtype() == DType::kDouble);
    EXPECT_EQ(!proto.tensor_content().empty(), raw) << proto.DebugString();
  }
  pb::TensorProto proto;
  TensorToTypedProto(Tensor::Scalar<float>(2), &proto);
  EXPECT_THAT(proto.float_val(), ElementsAre(2));
  TensorToTypedProto(Tensor::Vector<int64_t>({9}), &proto);
  EXPECT_THAT(proto.int64_val(), ElementsAre(9));
  TensorToTypedProto(Tensor::Scalar<float>(2), {100, 100}, &proto);
  EXPECT_THAT(proto.float_val(), ElementsAre(2));
  EXPECT_EQ(TensorFromProto(proto)->data<float>()[9999], 2);
}

TEST(TensorCodec, RepeatsTheLastTypedValue) {
  EXPECT_THAT(Decode("dtype: DT_INT32 tensor_shape { dim { size: 4 } } "
                     "int_val: 1 int_val: 2")
                  ->data<int32_t>(),
              ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(Decode("dtype: DT_INT8 tensor_shape { dim { size: 2 } }"
                     "int_val: 511 int_val: 2 int_val: 3")
                  ->data<int8_t>(),
              ElementsAre(-1, 2));
  EXPECT_THAT(Decode("dtype: DT_STRING tensor_shape { dim { size: 2 } }")
                  ->data<std::string>(),
              ElementsAre("", ""));
  EXPECT_THAT(
      Decode("dtype: DT_COMPLEX64 tensor_shape { dim { size: 2 } }"
             "scomplex_val: 1 scomplex_val: 2 scomplex_val: 3")
          ->data<std::complex<float>>(),
      ElementsAre(std::complex<float>(1, 2), std::complex<float>(1, 2)));
  // Values of another type's field are ignored.
  EXPECT_EQ(Decode("dtype: DT_FLOAT int_val: 3")->scalar<float>(), 0);
}

TEST(TensorCodec, ALongLastStringIsNotTakenForAll) {
  pb::TensorProto proto;
  proto.set_dtype(pb::DT_STRING);
  proto.mutable_tensor_shape()->add_dim()->set_size(1000);
  for (int i = 0; i < 999; ++i) proto.add_string_val("short");
  proto.add_string_val(std::string(4 << 20, 'x'));
  const absl::StatusOr<Tensor> tensor = TensorFromProto(proto);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->data<std::string>()[998], "short");
  EXPECT_EQ(tensor->data<std::string>()[999].size(), 4 << 20);
  EXPECT_LT(*BytesBeyondContent(proto), 100'000);
  // If it stands for others too, they count.
  proto.mutable_tensor_shape()->mutable_dim(0)->set_size(1001);
  EXPECT_GT(*BytesBeyondContent(proto), 4 << 20);
}

TEST(TensorCodec, BadMessagesAreErrors) {
  EXPECT_THAT(ErrorOf("float_val: 1"), HasSubstr("dtype 0"));
  EXPECT_THAT(ErrorOf("dtype: DT_FLOAT_REF"), HasSubstr("dtype 101"));
  EXPECT_THAT(ErrorOf("dtype: DT_INT4"), HasSubstr("dtype 29"));
  EXPECT_THAT(ErrorOf("dtype: DT_VARIANT"), HasSubstr("variant"));
  EXPECT_THAT(ErrorOf("dtype: DT_FLOAT tensor_shape { unknown_rank: true }"),
              HasSubstr("unknown rank"));
  EXPECT_THAT(ErrorOf("dtype: DT_FLOAT tensor_shape { dim { size: -1 } }"),
              HasSubstr("size -1"));
  EXPECT_THAT(ErrorOf("dtype: DT_FLOAT tensor_content: '12345'"),
              HasSubstr("5 bytes"));
  EXPECT_THAT(ErrorOf("dtype: DT_BOOL tensor_content: '\\002'"),
              HasSubstr("bool"));
  EXPECT_THAT(ErrorOf("dtype: DT_STRING tensor_content: '\\002x'"),
              HasSubstr("1 strings"));
  EXPECT_THAT(ErrorOf("dtype: DT_STRING tensor_content: '\\377'"),
              HasSubstr("1 strings"));
  EXPECT_THAT(ErrorOf("dtype: DT_RESOURCE tensor_content: '\\001x'"),
              HasSubstr("Element 0"));
  EXPECT_THAT(ErrorOf("dtype: DT_STRING string_val: 'abc' tensor_shape "
                      "{ dim { size: 99999999999 } }"),
              HasSubstr("2 GiB"));
}

TEST(TensorCodec, LargeContentsAreTakenOverNotCopied) {
  pb::TensorProto proto;
  const Tensor tensor(DType::kInt8, {100'000});
  TensorToProto(tensor, &proto);
  const void* const content = proto.tensor_content().data();
  const absl::StatusOr<Tensor> decoded = TensorFromProto(std::move(proto));
  EXPECT_EQ(decoded->raw(), content);
  EXPECT_TRUE(TensorsEqual(*decoded, tensor));
}

TEST(ShapeCodec, PartialShapesGoBothWays) {
  for (const PartialShape& shape :
       {PartialShape(), PartialShape::Scalar(), PartialShape({2, -1})}) {
    pb::TensorShapeProto proto;
    PartialShapeToProto(shape, &proto);
    EXPECT_EQ(PartialShapeFromProto(proto).value(), shape);
  }
  pb::TensorShapeProto proto;
  proto.add_dim()->set_size(-2);
  EXPECT_FALSE(PartialShapeFromProto(proto).ok());
  proto.set_unknown_rank(true);
  EXPECT_FALSE(PartialShapeFromProto(proto).ok());
}

}  // namespace
}  // namespace sluice
