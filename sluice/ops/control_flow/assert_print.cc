// Assert: fails the step unless a condition holds, and shows tensors then.
// Print, PrintV2: show tensors while a step runs.

#include <atomic>
#include <cstdio>

#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/control_flow/summarize.h"

namespace sluice {
namespace {
namespace assert_print {

absl::Status Assert(KernelContext& ctx) {
  const Tensor& condition = ctx.input(0);
  if (condition.rank() != 0) {
    return InvalidArgument("In[0] should be a scalar: ",
                           condition.shape().DebugString());
  }
  if (condition.scalar<bool>()) return absl::OkStatus();
  const int64_t summarize = ctx.attr<int64_t>("summarize");
  std::string message = "assertion failed: ";
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    if (i > 1) message += " ";
    StrAppend(&message, "[", SummarizeValue(ctx.input(i), summarize), "]");
  }
  return InvalidArgument(message);
}

// One write, so that lines of steps that run at once do not mix.
void WriteTo(std::FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

class PrintKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    return std::make_unique<PrintKernel>(node.attr<std::string>("message"),
                                         node.attr<int64_t>("first_n"),
                                         node.attr<int64_t>("summarize"));
  }
  PrintKernel(std::string message, int64_t first_n, int64_t summarize)
      : message_(std::move(message)),
        first_n_(first_n),
        summarize_(summarize) {}

  absl::Status Run(KernelContext& ctx) override {
    ctx.set_output(0, ctx.input(0));
    if (first_n_ >= 0 &&
        printed_.fetch_add(1, std::memory_order_relaxed) >= first_n_) {
      return absl::OkStatus();
    }
    std::string line = message_;
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      StrAppend(&line, "[", SummarizeValue(ctx.input(i), summarize_), "]");
    }
    WriteTo(stderr, line + "\n");
    return absl::OkStatus();
  }

 private:
  const std::string message_;
  const int64_t first_n_;
  const int64_t summarize_;
  std::atomic<int64_t> printed_{0};
};

Grads PrintGradient(Scope&, const Node& op, std::span<const Output> dy) {
  std::vector<Grad> grads(op.num_inputs());
  grads[0] = dy[0];
  return grads;
}

absl::Status AppendToFile(FileSystem& files, const std::string& path,
                          const std::string& text) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          files.NewAppendable(path));
  SLUICE_RETURN_IF_ERROR(file->Append(text));
  return file->Close();
}

absl::Status PrintV2(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  if (input.rank() != 0) {
    return InvalidArgument("Input is expected to be scalar, but got ",
                           input.shape().DebugString());
  }
  const std::string stream = ctx.attr<std::string>("output_stream");
  const std::string text =
      StrCat(input.scalar<std::string>(), ctx.attr<std::string>("end"));
  if (stream.starts_with("file://"))
    return AppendToFile(ctx.device().files(), stream.substr(7), text);
  if (stream == "stdout") {
    WriteTo(stdout, text);
  } else if (stream == "stderr") {
    WriteTo(stderr, text);
  } else if (stream == "log(info)") {
    SLUICE_LOG(INFO) << text;
  } else if (stream == "log(warning)") {
    SLUICE_LOG(WARNING) << text;
  } else if (stream == "log(error)") {
    SLUICE_LOG(ERROR) << text;
  } else {
    return InvalidArgument("Unknown output stream: ", stream,
                           "; it may be stdout, stderr, log(info), "
                           "log(warning), log(error) or file://path");
  }
  return absl::OkStatus();
}

absl::Status PrintV2Shape(ShapeContext& c) { return c.WithRank(0, 0).status(); }

}  // namespace assert_print
}  // namespace

SLUICE_OP(Assert)
    .Input("condition: bool")
    .Input("data: T")
    .Attr("T: list(type) >= 1")
    .Attr("summarize: int = 3")
    .Stateful()
    .Shape(shapes::NoOutputs)
    .NotDifferentiable();

SLUICE_OP(Print)
    .Input("input: T")
    .Input("data: U")
    .Output("output: T")
    .Attr("T: type")
    .Attr("U: list(type) >= 0")
    .Attr("message: string = ''")
    .Attr("first_n: int = -1")
    .Attr("summarize: int = 3")
    .Stateful()
    .Shape(shapes::SameAsInput)
    .Gradient(assert_print::PrintGradient);

SLUICE_OP(PrintV2)
    .Input("input: string")
    .Attr("output_stream: string = 'stderr'")
    .Attr("end: string = '\\n'")
    .Stateful()
    .Shape(assert_print::PrintV2Shape);

SLUICE_KERNEL(Assert, kCpu).Function(assert_print::Assert);
SLUICE_KERNEL(Print, kCpu).Class<assert_print::PrintKernel>();
SLUICE_KERNEL(PrintV2, kCpu).Function(assert_print::PrintV2);

}  // namespace sluice
