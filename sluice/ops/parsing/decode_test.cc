#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/example.pb.h"

namespace sluice {
namespace {
namespace decode_test {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

TEST(DecodeRaw, TakesBytesAsNumbers) {
  OpTest op("DecodeRaw");
  op.AddInput(Tensor::Vector<std::string>(
      {std::string("\1\0\2\0", 4), std::string("\0\1\xff\xff", 4)}));
  op.Attr("out_type", DType::kInt16);
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Of<int16_t>({2, 2}, {1, 2, 256, -1}));
  OpTest big("DecodeRaw");
  big.AddInput(Tensor::Scalar(std::string("\0\1\2\0", 4)));
  big.Attr("out_type", DType::kInt16).Attr("little_endian", false);
  SLUICE_ASSERT_OK(big.Run());
  ExpectClose(big.output(0), Tensor::Vector<int16_t>({1, 512}));
  OpTest empty("DecodeRaw");
  empty.AddInput(Tensor::Vector<std::string>({"", ""}));
  empty.Attr("out_type", DType::kFloat);
  SLUICE_ASSERT_OK(empty.Run());
  EXPECT_EQ(empty.output(0).shape(), Shape({2, 0}));
  EXPECT_EQ(InferredShape("DecodeRaw", {"[3]"}, {{"out_type", DType::kFloat}},
                          DType::kString),
            "[3,?]");
}

TEST(DecodeRaw, RefusesWhatIsNoNumber) {
  OpTest odd("DecodeRaw");
  odd.AddInput(Tensor::Scalar<std::string>("abc"));
  odd.Attr("out_type", DType::kInt32);
  EXPECT_THAT(odd.Run(),
              StatusIs(Code::kInvalidArgument,
                       "Input to DecodeRaw has length 3 that is not a multiple "
                       "of 4, the size of int32"));
  OpTest uneven("DecodeRaw");
  uneven.AddInput(Tensor::Vector<std::string>({"abcd", "ab"}));
  uneven.Attr("out_type", DType::kInt8);
  EXPECT_THAT(uneven.Run(),
              StatusIs(Code::kInvalidArgument,
                       "DecodeRaw requires input strings to all be the same "
                       "size, but element 1 has size 4 != 2"));
}

TEST(DecodePaddedRaw, PadsWithZerosAndCuts) {
  OpTest op("DecodePaddedRaw");
  op.AddInput(Tensor::Vector<std::string>({"ab", "abcdef"}));
  op.AddInput(Tensor::Scalar<int32_t>(4)).Attr("out_type", DType::kUint8);
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0),
              Tensor::Of<uint8_t>({2, 4}, {97, 98, 0, 0, 97, 98, 99, 100}));
  OpTest odd("DecodePaddedRaw");
  odd.AddInput(Tensor::Scalar<std::string>("ab"));
  odd.AddInput(Tensor::Scalar<int32_t>(3)).Attr("out_type", DType::kInt32);
  EXPECT_THAT(odd.Run(), StatusIs(Code::kInvalidArgument,
                                  HasSubstr("must be a multiple")));
}

// DecodeCSV with (float default 0.5, required int32, string default "d").
absl::Status RunCsv(OpTest& op, const std::vector<std::string>& records) {
  op.AddInput(Tensor::Of<std::string>({static_cast<int64_t>(records.size())},
                                      std::span<const std::string>(records)));
  op.AddInput(Tensor::Vector<float>({0.5}));
  op.AddInput(Tensor(DType::kInt32, Shape({0})));
  op.AddInput(Tensor::Scalar<std::string>("d"));
  return op.Run();
}

std::string CsvError(const std::string& record) {
  OpTest op("DecodeCSV");
  return std::string(RunCsv(op, {record}).message());
}

TEST(DecodeCsv, GivesColumnsWithDefaults) {
  OpTest op("DecodeCSV");
  SLUICE_ASSERT_OK(RunCsv(
      op, {"1.5,2,x", ",-3,", "\"2\",4,\"a \"\"b\"\", c\"", " 1 , 7 ,y"}));
  ExpectClose(op.output(0), Tensor::Vector<float>({1.5, 0.5, 2, 1}));
  ExpectClose(op.output(1), Tensor::Vector<int32_t>({2, -3, 4, 7}));
  ExpectClose(op.output(2),
              Tensor::Vector<std::string>({"x", "d", "a \"b\", c", "y"}));
}

TEST(DecodeCsv, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(CsvError("a,1,x"), "Field 0 in record 0 is not a valid float: a");
  EXPECT_EQ(CsvError("1,99999999999,x"),
            "Field 1 in record 0 is not a valid int32: 99999999999");
  EXPECT_EQ(CsvError("1"), "Expect 3 fields but have 1 in record 0");
  EXPECT_EQ(CsvError(""), "Expect 3 fields but have 0 in record 0");
  EXPECT_EQ(CsvError("1,,x"), "Field 1 is required but missing in record 0!");
  EXPECT_EQ(CsvError("1,2,x\"y"),
            "Unquoted fields cannot have quotes/CRLFs inside");
  EXPECT_EQ(CsvError("1,2,\"x\"y\""),
            "Quote inside a string has to be escaped by another quote");
  EXPECT_EQ(CsvError("1,2,\"x"),
            "Quoted field has to end with quote followed by delim or end");
  EXPECT_EQ(CsvError("1,2,x\r\n"),
            "Unquoted fields cannot have quotes/CRLFs inside");
}

TEST(DecodeCsv, TakesOtherDelimitersMissingValuesAndColumns) {
  OpTest op("DecodeCSV");
  op.AddInput(Tensor::Vector<std::string>({"a;NA;\"q\";4"}));
  op.AddInput(Tensor::Vector<int64_t>({7}));
  op.AddInput(Tensor::Vector<std::string>({""}));
  op.Attr("field_delim", ";").Attr("na_value", "NA");
  op.Attr("use_quote_delim", false);
  op.Attr("select_cols", std::vector<int64_t>{1, 2});
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Vector<int64_t>({7}));
  ExpectClose(op.output(1), Tensor::Vector<std::string>({"\"q\""}));
  OpTest order("DecodeCSV");
  order.AddInput(Tensor::Vector<std::string>({"a"}));
  order.AddInput(Tensor::Vector<int64_t>({7}));
  order.AddInput(Tensor::Vector<int64_t>({7}));
  order.Attr("select_cols", std::vector<int64_t>{2, 1});
  EXPECT_THAT(order.Run(), StatusIs(Code::kInvalidArgument,
                                    HasSubstr("strictly increasing")));
}

TEST(ParseTensor, UndoesSerializeTensor) {
  const Tensor tensor = Tensor::Of<std::string>({1, 2}, {"a", "bc"});
  OpTest serialize("SerializeTensor");
  serialize.AddInput(tensor);
  SLUICE_ASSERT_OK(serialize.Run());
  OpTest parse("ParseTensor");
  parse.AddInput(serialize.output(0)).Attr("out_type", DType::kString);
  SLUICE_ASSERT_OK(parse.Run());
  ExpectClose(parse.output(0), tensor);
  OpTest type("ParseTensor");
  type.AddInput(serialize.output(0)).Attr("out_type", DType::kFloat);
  EXPECT_THAT(type.Run(), StatusIs(Code::kInvalidArgument,
                                   "Type mismatch between parsed tensor "
                                   "(string) and dtype (float)"));
  OpTest garbage("ParseTensor");
  garbage.AddInput(Tensor::Scalar<std::string>("\xff\xff"));
  garbage.Attr("out_type", DType::kFloat);
  EXPECT_THAT(garbage.Run(),
              StatusIs(Code::kInvalidArgument, HasSubstr("Could not parse")));
}

TEST(DecodeJsonExample, MakesExamples) {
  OpTest op("DecodeJSONExample");
  op.AddInput(Tensor::Vector<std::string>(
      {R"({"features": {"feature": {"x": {"int64List": {"value": ["7"]}}}}})"}));
  SLUICE_ASSERT_OK(op.Run());
  pb::Example example;
  ASSERT_TRUE(example.ParseFromString(op.output(0).data<std::string>()[0]));
  EXPECT_EQ(example.features().feature().at("x").int64_list().value(0), 7);
  OpTest bad("DecodeJSONExample");
  bad.AddInput(Tensor::Scalar<std::string>("{"));
  EXPECT_THAT(bad.Run(), StatusIs(Code::kInvalidArgument,
                                  HasSubstr("Error while parsing JSON")));
}

TEST(DecodeCompressed, RefusesWhatIsNotPacked) {
  OpTest plain("DecodeCompressed");
  plain.AddInput(Tensor::Scalar<std::string>("abc"));
  SLUICE_ASSERT_OK(plain.Run());
  EXPECT_EQ(plain.output(0).scalar<std::string>(), "abc");
  OpTest op("DecodeCompressed");
  op.AddInput(Tensor::Scalar<std::string>("no zlib at all"));
  op.Attr("compression_type", "ZLIB");
  EXPECT_FALSE(op.Run().ok());
}

}  // namespace decode_test
}  // namespace
}  // namespace sluice
