// PyFunc, PyFuncStateless: functions of the Python program, called while a step
// runs. They live in the process that built the graph and nowhere else.

#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/foreign_functions.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/queue/step_wait.h"

namespace sluice {
namespace {
namespace py_func {

// Tokens are "pyfunc_3@<process>"; messages show what stands before the @.
std::string ShownToken(const std::string& token) {
  return token.substr(0, token.find('@'));
}

// One call under way. Whoever comes first, the answer or the end of the step,
// finishes the kernel.
class PyCall : public std::enable_shared_from_this<PyCall> {
 public:
  PyCall(KernelContext& ctx, std::string token, Done done)
      : ctx_(ctx), token_(std::move(token)), done_(std::move(done)) {}

  void Start() {
    std::vector<Tensor> inputs;
    for (int i = 0; i < ctx_.num_inputs(); ++i) inputs.push_back(ctx_.input(i));
    bool begun;
    {
      MutexLock lock(mu_);
      begun = wait_.Begin(ctx_, StrCat("Python function ", ShownToken(token_)),
                          [self = shared_from_this()] { self->OnCancel(); });
    }
    if (!begun) {
      Finish(ctx_.step().cancellation->status());
      return;
    }
    CallForeign(token_, std::move(inputs),
                [self = shared_from_this()](
                    absl::StatusOr<std::vector<Tensor>> outputs) {
                  self->OnAnswer(std::move(outputs));
                });
  }

 private:
  void OnCancel() {
    Done done;
    absl::Status why;
    {
      MutexLock lock(mu_);
      if (!done_) return;
      wait_.Forget();
      why = ctx_.step().cancellation->status();
      done = std::move(done_);
      done_ = nullptr;
    }
    wait_.End();
    done(std::move(why));
  }

  void OnAnswer(absl::StatusOr<std::vector<Tensor>> outputs) {
    Done done;
    {
      MutexLock lock(mu_);
      if (!done_) return;  // The step is over, and `ctx_` with it.
      done = std::move(done_);
      done_ = nullptr;
    }
    wait_.End();
    done(SetOutputs(std::move(outputs)));
  }

  void Finish(absl::Status status) {
    Done done;
    {
      MutexLock lock(mu_);
      if (!done_) return;
      done = std::move(done_);
      done_ = nullptr;
    }
    done(std::move(status));
  }

  absl::Status SetOutputs(absl::StatusOr<std::vector<Tensor>> outputs) {
    if (absl::IsNotFound(outputs.status())) return NotHere(outputs.status());
    SLUICE_RETURN_IF_ERROR(outputs.status());
    const int count = static_cast<int>(outputs->size());
    if (count != ctx_.num_outputs()) {
      return InvalidArgument(ShownToken(token_), " returns ", count,
                             " values, but expects to see ", ctx_.num_outputs(),
                             " values.");
    }
    for (int i = 0; i < count; ++i) {
      const DType wanted = ctx_.node().output_type(i);
      Tensor& value = (*outputs)[i];
      if (value.dtype() != wanted) {
        return InvalidArgument(i, "-th value returned by ", ShownToken(token_),
                               " is ", DTypeName(value.dtype()),
                               ", but expects ", DTypeName(wanted));
      }
      ctx_.set_output(i, std::move(value));
    }
    return absl::OkStatus();
  }

  absl::Status NotHere(const absl::Status& why) const {
    return InvalidArgument(
        "callback ", ShownToken(token_),
        " is not found: tf.py_func runs in "
        "the process of the program that built the graph, and ",
        ctx_.node().name(), " is on ", ctx_.device().name(),
        ", which is another process (", why.message(),
        "). Place it with tf.device() on a task that runs in the program's own "
        "process, such as the worker whose server the program started.");
  }

  KernelContext& ctx_;
  const std::string token_;
  Mutex mu_;
  Done done_ SLUICE_GUARDED_BY(mu_);
  StepWait wait_;
};

class PyFuncKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<PyFuncKernel>(
        construction.attr<std::string>("token"));
  }
  explicit PyFuncKernel(std::string token) : token_(std::move(token)) {}

  void Start(KernelContext& ctx, Done done) override {
    std::make_shared<PyCall>(ctx, token_, std::move(done))->Start();
  }

 private:
  const std::string token_;
};

}  // namespace py_func
}  // namespace

SLUICE_OP(PyFunc)
    .Input("input: Tin")
    .Output("output: Tout")
    .Attr("token: string")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Stateful()
    .Shape(shapes::Unknown)
    .NotDifferentiable();
SLUICE_KERNEL(PyFunc, kCpu).Class<py_func::PyFuncKernel>();

SLUICE_OP(PyFuncStateless)
    .Input("input: Tin")
    .Output("output: Tout")
    .Attr("token: string")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Shape(shapes::Unknown)
    .NotDifferentiable();
SLUICE_KERNEL(PyFuncStateless, kCpu).Class<py_func::PyFuncKernel>();

}  // namespace sluice
