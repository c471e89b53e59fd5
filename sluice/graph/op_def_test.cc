#include "sluice/graph/op_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/graph/op_registry.h"
#include "sluice/proto/op_def.pb.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

OpDef MakeOp(const std::vector<const char*>& attrs,
             const std::vector<const char*>& inputs,
             const std::vector<const char*>& outputs) {
  OpDef def;
  def.name = "TestMade";
  for (const char* text : attrs) {
    auto attr = ParseAttr(text);
    EXPECT_TRUE(attr.ok()) << attr.status();
    def.attrs.push_back(*attr);
  }
  for (const char* text : inputs) {
    auto arg = ParseArg(text, def.attrs);
    EXPECT_TRUE(arg.ok()) << arg.status();
    def.inputs.push_back(*arg);
  }
  for (const char* text : outputs) {
    auto arg = ParseArg(text, def.attrs);
    EXPECT_TRUE(arg.ok()) << arg.status();
    def.outputs.push_back(*arg);
  }
  return def;
}

TEST(ParseAttr, ReadsTypeAllowedMinimumAndDefault) {
  auto attr = ParseAttr("T: {float, half} = DT_HALF");
  ASSERT_TRUE(attr.ok()) << attr.status();
  EXPECT_EQ(attr->name, "T");
  EXPECT_EQ(attr->type, "type");
  EXPECT_THAT(attr->allowed.types, ElementsAre(DType::kFloat, DType::kHalf));
  EXPECT_EQ(*attr->default_value, AttrValue(DType::kHalf));

  attr = ParseAttr("N: int >= -1 = 3");
  ASSERT_TRUE(attr.ok()) << attr.status();
  EXPECT_EQ(attr->minimum, -1);
  EXPECT_EQ(*attr->default_value, AttrValue(3));

  attr = ParseAttr("Ts: list({int32, string}) >= 1");
  ASSERT_TRUE(attr.ok()) << attr.status();
  EXPECT_EQ(attr->type, "list(type)");
  EXPECT_THAT(attr->allowed.types, ElementsAre(DType::kInt32, DType::kString));
  EXPECT_EQ(attr->minimum, 1);
}

TEST(ParseAttr, ReadsDefaultsOfEveryKind) {
  const auto value = [](std::string_view text) {
    auto attr = ParseAttr(text);
    EXPECT_TRUE(attr.ok()) << attr.status();
    return attr.ok() ? *attr->default_value : AttrValue();
  };
  EXPECT_EQ(value("s: string = \"a, [b\""), AttrValue("a, [b"));
  EXPECT_EQ(value("s: string = '\\t'"), AttrValue("\t"));
  EXPECT_EQ(value("s: string = ''"), AttrValue(""));
  EXPECT_EQ(value("f: float = 1e-05"), AttrValue(1e-05f));
  EXPECT_EQ(value("b: bool = true"), AttrValue(true));
  EXPECT_EQ(value("p: {'SAME', 'VALID'} = 'SAME'"), AttrValue("SAME"));
  EXPECT_EQ(value("l: list(int) = [1, 2]"),
            AttrValue(std::vector<int64_t>{1, 2}));
  EXPECT_EQ(value("l: list(string) = []"), AttrValue(AttrList()));
  EXPECT_EQ(value("s: shape = ?"), AttrValue(PartialShape()));
  EXPECT_EQ(value("s: shape = { unknown_rank: true }"),
            AttrValue(PartialShape()));
  EXPECT_EQ(value("s: shape = {}"), AttrValue(PartialShape::Scalar()));
  EXPECT_EQ(value("s: shape = [2, ?]"), AttrValue(PartialShape({2, -1})));
  EXPECT_EQ(value("t: tensor = { dtype: DT_UINT8 "
                  "tensor_shape: { dim: { size: 2 } } int_val: 7 }"),
            AttrValue(Tensor::Of<uint8_t>({2}, {7, 7})));
}

TEST(ParseAttr, RefusesWhatItDoesNotUnderstand) {
  for (std::string_view bad :
       {"", "T", "T: nonsense", "T: {float", "T: {flot}", "N: int = x",
        "N: int >= ", "b: bool = yes", "N: int 3", "T: list(int",
        "t: tensor = 3", "s: shape = [-2]"}) {
    EXPECT_FALSE(ParseAttr(bad).ok()) << bad;
  }
}

TEST(ParseArg, RefusesWhatItDoesNotUnderstand) {
  const OpDef op = MakeOp({"N: int", "T: type"}, {}, {});
  for (std::string_view bad : {"", "x", "x: nonsense", "x: Ref(T", "x: M * T",
                               "x: N", "x: T * T", "x: T T", "x: N *"}) {
    EXPECT_FALSE(ParseArg(bad, op.attrs).ok()) << bad;
  }
}

TEST(ArgTypes, SpreadsListsAndMarksRefs) {
  const OpDef op = MakeOp({"N: int >= 0", "T: type", "Ts: list(type)"},
                          {"a: int32", "b: Ref(T)", "c: N * T", "d: Ts"}, {});
  AttrMap attrs = {{"N", 2},
                   {"T", DType::kFloat},
                   {"Ts", std::vector<DType>{DType::kString, DType::kBool}}};
  auto types = ArgTypes(op.inputs, attrs);
  ASSERT_TRUE(types.ok()) << types.status();
  EXPECT_THAT(*types,
              ElementsAre(DType::kInt32, RefType(DType::kFloat), DType::kFloat,
                          DType::kFloat, DType::kString, DType::kBool));
  attrs.Set("N", int64_t{1} << 40);
  EXPECT_THAT(StatusText(ArgTypes(op.inputs, attrs).status()),
              HasSubstr("it must be between 0 and"));
}

TEST(CheckAttrs, FillsDefaultsAndKeepsAnnotations) {
  const OpDef op = MakeOp({"N: int = 4", "s: string = 'x'"}, {}, {});
  AttrMap attrs = {{"s", "y"}, {"_class", "z"}};
  ASSERT_TRUE(CheckAttrs(op, "n", &attrs).ok());
  EXPECT_EQ(*attrs.Find("N"), AttrValue(4));
  EXPECT_EQ(*attrs.Find("s"), AttrValue("y"));
  EXPECT_TRUE(attrs.Contains("_class"));
}

TEST(CheckAttrs, SaysWhatIsWrongInTensorFlowsWords) {
  const OpDef op =
      MakeOp({"T: {float, int32}", "N: int >= 2 = 2", "p: {'A', 'B'} = 'A'",
              "l: list(type) >= 1 = [int32]"},
             {"x: N * T"}, {"y: T"});
  const auto check = [&](AttrMap attrs) {
    return StatusText(CheckAttrs(op, "n", &attrs));
  };
  const std::string summary =
      "Op<name=TestMade; signature=x:N*T -> y:T; "
      "attr=T:type,allowed=[DT_FLOAT, DT_INT32]; attr=N:int,default=2,min=2; "
      "attr=p:string,default=\"A\",allowed=[\"A\", \"B\"]; "
      "attr=l:list(type),default=[DT_INT32],min=1>";
  EXPECT_EQ(check({}),
            StrCat("Invalid argument: NodeDef missing attr 'T' from ", summary,
                   "; NodeDef: {{node n}}"));
  EXPECT_EQ(
      check({{"T", DType::kFloat}, {"zzz", 1}}),
      StrCat("Invalid argument: NodeDef mentions attr 'zzz' not in ", summary,
             "; NodeDef: {{node n}}. (Check whether your "
             "GraphDef-interpreting binary is up to date with your "
             "GraphDef-generating binary.)."));
  EXPECT_THAT(check({{"T", DType::kString}}),
              StartsWith("Invalid argument: Value for attr 'T' of string is "
                         "not in the list of allowed values: float, int32"));
  EXPECT_THAT(check({{"T", DType::kFloat}, {"N", 1}}),
              HasSubstr("Value for attr 'N' of 1 must be at least minimum 2"));
  EXPECT_THAT(check({{"T", DType::kFloat}, {"l", AttrList()}}),
              HasSubstr("Length for attr 'l' of 0 must be at least minimum 1"));
  EXPECT_THAT(check({{"T", DType::kFloat}, {"p", "C"}}),
              HasSubstr("of \"C\" is not in the list of allowed values: "
                        "\"A\", \"B\""));
  EXPECT_THAT(check({{"T", 1}}),
              HasSubstr("AttrValue had value with type 'int' when 'type' "
                        "expected\n\t for attr 'T'\n\t; NodeDef: {{node n}}"));
  EXPECT_THAT(check({{"T", RefType(DType::kFloat)}}),
              HasSubstr("must not have reference type value of float_ref"));
  EXPECT_THAT(check({{"T", static_cast<DType>(77)}}),
              HasSubstr("invalid DataType enum: 77"));
  EXPECT_THAT(check({{"T", AttrValue()}}),
              HasSubstr("AttrValue missing value with expected type 'type'"));
}

TEST(OpSummary, ShowsFlagsAndRefs) {
  OpDef op = MakeOp({"dtype: type"}, {}, {"ref: Ref(dtype)"});
  op.stateful = true;
  EXPECT_EQ(OpSummary(op),
            "Op<name=TestMade; signature= -> ref:Ref(dtype); attr=dtype:type; "
            "is_stateful=true>");
}

TEST(OpDefCodec, KeepsEverything) {
  OpDef def = MakeOp({"N: int >= 1 = 2", "T: {float, int32} = DT_FLOAT",
                      "p: {'A', 'B'}", "Ts: list(type)"},
                     {"a: N * T", "b: Ref(T)", "c: Ts", "d: string"}, {"y: T"});
  def.stateful = def.commutative = def.aggregate = true;
  def.allows_uninitialized_input = true;
  pb::OpDef proto;
  OpDefToProto(def, &proto);
  auto back = OpDefFromProto(proto);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, def);
}

TEST(OpDefCodec, RefusesDefinitionsThatContradictThemselves) {
  pb::OpDef good;
  OpDefToProto(MakeOp({"T: type", "N: int = 1"}, {"x: T"}, {}), &good);
  ASSERT_TRUE(OpDefFromProto(good).ok());
  pb::OpDef bad = good;
  bad.clear_name();
  EXPECT_THAT(StatusText(OpDefFromProto(bad).status()),
              HasSubstr("it has no name"));
  bad = good;
  bad.mutable_input_arg(0)->set_type_attr("U");
  EXPECT_THAT(StatusText(OpDefFromProto(bad).status()),
              HasSubstr("argument 'x' needs an attr 'U' of type type"));
  bad = good;
  bad.mutable_input_arg(0)->set_type(pb::DT_FLOAT);
  EXPECT_THAT(StatusText(OpDefFromProto(bad).status()),
              HasSubstr("exactly one of"));
  bad = good;
  bad.mutable_attr(1)->mutable_default_value()->set_s("x");
  EXPECT_THAT(StatusText(OpDefFromProto(bad).status()),
              HasSubstr("when 'int' expected"));
  bad = good;
  bad.mutable_attr(1)->set_name("T");
  EXPECT_THAT(StatusText(OpDefFromProto(bad).status()), HasSubstr("twice"));
  bad = good;
  bad.mutable_attr(1)->set_type("list(list(int))");
  EXPECT_THAT(StatusText(OpDefFromProto(bad).status()),
              HasSubstr("unknown type"));
}

TEST(OpRegistry, TakesTheSameDefinitionTwiceButNoOther) {
  OpDef def = MakeOp({}, {"x: float"}, {"y: float"});
  def.name = "TestRegisteredAtRunTime";
  OpRegistry& registry = OpRegistry::Global();
  ASSERT_TRUE(registry.AddDefinition(def).ok());
  EXPECT_TRUE(registry.AddDefinition(def).ok());
  EXPECT_EQ(registry.Find(def.name)->def, def);
  def.stateful = true;
  EXPECT_EQ(registry.AddDefinition(def).code(),
            absl::StatusCode::kAlreadyExists);
}

TEST(OpRegistry, NamesAnUnknownOpInTensorFlowsWords) {
  EXPECT_THAT(
      StatusText(OpRegistry::Global().Lookup("NoSuchOp").status()),
      StartsWith("Not found: Op type not registered 'NoSuchOp' in binary "
                 "running on "));
}

}  // namespace
}  // namespace sluice
