#include "sluice/kernel/foreign_functions.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;

AttrList FloatTypesOf(int n) {
  AttrList list;
  list.types.assign(n, DType::kFloat);
  return list;
}

// Calls `function` for each token but "gone@1" while it lives.
class WithFunctions {
 public:
  using Function =
      absl::StatusOr<std::vector<Tensor>> (*)(std::vector<Tensor> inputs);
  explicit WithFunctions(Function function) {
    SetForeignCaller([function](const std::string& token,
                                std::vector<Tensor> inputs, ForeignDone done) {
      if (token == "gone@1") {
        done(NotFound("no function ", token));
      } else {
        done(function(std::move(inputs)));
      }
    });
  }
  ~WithFunctions() { SetForeignCaller(nullptr); }
};

absl::StatusOr<std::vector<Tensor>> BackToFront(std::vector<Tensor> inputs) {
  std::reverse(inputs.begin(), inputs.end());
  return inputs;
}

OpTest& AddPyFunc(OpTest& op, const char* token, int outputs) {
  return op.AddInput<float>({}, {1})
      .AddInput<float>({2}, {2, 3})
      .Attr("token", std::string_view(token))
      .Attr("Tout", FloatTypesOf(outputs));
}

TEST(PyFunc, GivesWhatTheFunctionReturns) {
  const WithFunctions functions(BackToFront);
  for (const char* type : {"PyFunc", "PyFuncStateless"}) {
    OpTest op(type);
    AddPyFunc(op, "pyfunc_0@1", 2);
    SLUICE_ASSERT_OK(op.Run());
    ExpectClose(op.output(0), Tensor::Of<float>({2}, {2, 3}));
    ExpectClose(op.output(1), Tensor::Of<float>({}, {1}));
  }
}

TEST(PyFunc, SaysWhichValuesAreWrong) {
  const WithFunctions functions(BackToFront);
  OpTest count("PyFunc");
  AddPyFunc(count, "pyfunc_7@1", 1);
  EXPECT_THAT(count.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "pyfunc_7 returns 2 values, but expects to see 1 "
                       "values."));
  OpTest type("PyFunc");
  AddPyFunc(type, "pyfunc_7@1", 2);
  AttrList doubles;
  doubles.types.assign(2, DType::kDouble);
  type.Attr("Tout", doubles);
  EXPECT_THAT(type.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "0-th value returned by pyfunc_7 is float, but expects "
                       "double"));
}

TEST(PyFunc, SaysThatItIsInTheWrongProcess) {
  for (const bool has_functions : {false, true}) {
    std::optional<WithFunctions> functions;
    if (has_functions) functions.emplace(BackToFront);
    OpTest op("PyFunc");
    AddPyFunc(op, "gone@1", 2);
    EXPECT_THAT(op.Run(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("callback gone is not found"),
                               HasSubstr("which is another process"),
                               HasSubstr("Place it with tf.device()"))));
  }
}

TEST(PyFunc, PassesTheErrorOn) {
  const WithFunctions functions(
      // NOLINTNEXTLINE(performance-unnecessary-value-param): its type is given.
      [](std::vector<Tensor>) -> absl::StatusOr<std::vector<Tensor>> {
        return OutOfRange("StopIteration: no more");
      });
  OpTest op("PyFunc");
  AddPyFunc(op, "pyfunc_0@1", 1);
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kOutOfRange,
                                 "StopIteration: no more"));
}

}  // namespace
}  // namespace sluice
