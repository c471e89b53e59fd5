// Arithmetic of halves and bfloat16: the float kernel of the op does it, on
// widened inputs, and what it gives is rounded. So every op rounds once, and
// sums and products of matrices lose nothing on the way.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/scope.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/run_kernel.h"
#include "sluice/numeric/narrow.h"

namespace sluice {
namespace {
namespace widened {

bool IsNarrow(DType type) {
  return type == DType::kHalf || type == DType::kBfloat16;
}

DType WideType(DType type) { return IsNarrow(type) ? DType::kFloat : type; }

absl::StatusOr<Tensor> Wide(const Tensor& narrow) {
  SLUICE_ASSIGN_OR_RETURN(Tensor wide,
                          Tensor::Create(DType::kFloat, narrow.shape()));
  float* to = wide.mutable_data<float>().data();
  if (narrow.dtype() == DType::kHalf) {
    numeric::Widen(narrow.data<Half>().data(), 1, narrow.size(), to);
  } else {
    numeric::Widen(narrow.data<BFloat16>().data(), 1, narrow.size(), to);
  }
  return wide;
}

absl::StatusOr<Tensor> Rounded(const Tensor& wide, DType type) {
  SLUICE_ASSIGN_OR_RETURN(Tensor narrow, Tensor::Create(type, wide.shape()));
  const float* from = wide.data<float>().data();
  if (type == DType::kHalf) {
    numeric::Round(from, wide.size(), narrow.mutable_data<Half>().data());
  } else {
    numeric::Round(from, wide.size(), narrow.mutable_data<BFloat16>().data());
  }
  return narrow;
}

// The same op on floats, in a graph of its own.
absl::StatusOr<Node*> WideNode(const Node& node, Graph& graph) {
  const Scope scope = Scope::Detached(graph);
  std::vector<Output> inputs;
  for (int i = 0; i < node.num_inputs(); ++i) {
    inputs.push_back(
        scope.Add("Placeholder", {},
                  {{"dtype", WideType(BaseType(TypeOf(node.input(i))))}}));
  }
  AttrMap attrs;
  for (const AttrDef& attr : node.op().def.attrs) {
    const AttrValue* value = node.attrs().Find(attr.name);
    if (value == nullptr) continue;
    const DType* type = value->get<DType>();
    attrs.Set(attr.name, type == nullptr ? *value : AttrValue(WideType(*type)));
  }
  Node* wide = scope.AddNode(node.type(), inputs, std::move(attrs));
  if (!scope.ok()) return scope.status();
  return wide;
}

class WidenedKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    auto kernel = std::make_unique<WidenedKernel>();
    SLUICE_ASSIGN_OR_RETURN(kernel->node_,
                            WideNode(construction.node(), kernel->graph_));
    SLUICE_ASSIGN_OR_RETURN(kernel->wide_,
                            MakeKernel(*kernel->node_, construction.device()));
    return kernel;
  }

  absl::Status Run(KernelContext& ctx) override {
    std::vector<Tensor> inputs;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      inputs.push_back(ctx.input(i));
      if (IsNarrow(inputs[i].dtype())) {
        SLUICE_ASSIGN_OR_RETURN(inputs[i], Wide(ctx.input(i)));
      }
    }
    SLUICE_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                            RunKernel(*wide_, *node_, ctx.device(), inputs));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int at = static_cast<int>(i);
      const DType type = ctx.node().output_type(at);
      if (IsNarrow(type) && outputs[i].initialized()) {
        SLUICE_ASSIGN_OR_RETURN(outputs[i], Rounded(outputs[i], type));
      }
      ctx.set_output(at, std::move(outputs[i]));
    }
    return absl::OkStatus();
  }

 private:
  Graph graph_;
  Node* node_ = nullptr;
  std::unique_ptr<Kernel> wide_;
};

}  // namespace widened
}  // namespace

#define SLUICE_WIDENED(NAME)            \
  SLUICE_KERNEL(NAME, kCpu)             \
      .Type("T", DType::kHalf)          \
      .Class<widened::WidenedKernel>(); \
  SLUICE_KERNEL(NAME, kCpu)             \
      .Type("T", DType::kBfloat16)      \
      .Class<widened::WidenedKernel>()

SLUICE_WIDENED(Abs);
SLUICE_WIDENED(Add);
SLUICE_WIDENED(AddN);
SLUICE_WIDENED(AddV2);
SLUICE_WIDENED(AccumulateNV2);
SLUICE_WIDENED(BatchMatMul);
SLUICE_WIDENED(BatchMatMulV2);
SLUICE_WIDENED(BiasAdd);
SLUICE_WIDENED(BiasAddGrad);
SLUICE_WIDENED(BiasAddV1);
SLUICE_WIDENED(Ceil);
SLUICE_WIDENED(Cos);
SLUICE_WIDENED(Cumsum);
SLUICE_WIDENED(Div);
SLUICE_WIDENED(DivNoNan);
SLUICE_WIDENED(Elu);
SLUICE_WIDENED(EluGrad);
SLUICE_WIDENED(Equal);
SLUICE_WIDENED(Exp);
SLUICE_WIDENED(Expm1);
SLUICE_WIDENED(Floor);
SLUICE_WIDENED(FloorDiv);
SLUICE_WIDENED(FloorMod);
SLUICE_WIDENED(Greater);
SLUICE_WIDENED(GreaterEqual);
SLUICE_WIDENED(Inv);
SLUICE_WIDENED(IsFinite);
SLUICE_WIDENED(IsInf);
SLUICE_WIDENED(IsNan);
SLUICE_WIDENED(L2Loss);
SLUICE_WIDENED(LeakyRelu);
SLUICE_WIDENED(Less);
SLUICE_WIDENED(LessEqual);
SLUICE_WIDENED(Log);
SLUICE_WIDENED(Log1p);
SLUICE_WIDENED(LogSoftmax);
SLUICE_WIDENED(MatMul);
SLUICE_WIDENED(Max);
SLUICE_WIDENED(Maximum);
SLUICE_WIDENED(Mean);
SLUICE_WIDENED(Min);
SLUICE_WIDENED(Minimum);
SLUICE_WIDENED(Mod);
SLUICE_WIDENED(Mul);
SLUICE_WIDENED(MulNoNan);
SLUICE_WIDENED(Neg);
SLUICE_WIDENED(NotEqual);
SLUICE_WIDENED(Pow);
SLUICE_WIDENED(Prod);
SLUICE_WIDENED(RealDiv);
SLUICE_WIDENED(Reciprocal);
SLUICE_WIDENED(ReciprocalGrad);
SLUICE_WIDENED(Relu);
SLUICE_WIDENED(Relu6);
SLUICE_WIDENED(Relu6Grad);
SLUICE_WIDENED(ReluGrad);
SLUICE_WIDENED(Rint);
SLUICE_WIDENED(Round);
SLUICE_WIDENED(Rsqrt);
SLUICE_WIDENED(RsqrtGrad);
SLUICE_WIDENED(SegmentSum);
SLUICE_WIDENED(Selu);
SLUICE_WIDENED(SeluGrad);
SLUICE_WIDENED(Sigmoid);
SLUICE_WIDENED(SigmoidGrad);
SLUICE_WIDENED(Sign);
SLUICE_WIDENED(Sin);
SLUICE_WIDENED(Softmax);
SLUICE_WIDENED(SoftmaxCrossEntropyWithLogits);
SLUICE_WIDENED(Softplus);
SLUICE_WIDENED(SoftplusGrad);
SLUICE_WIDENED(Softsign);
SLUICE_WIDENED(SoftsignGrad);
SLUICE_WIDENED(SparseSegmentMean);
SLUICE_WIDENED(SparseSegmentSqrtN);
SLUICE_WIDENED(SparseSegmentSum);
SLUICE_WIDENED(SparseSoftmaxCrossEntropyWithLogits);
SLUICE_WIDENED(Sqrt);
SLUICE_WIDENED(SqrtGrad);
SLUICE_WIDENED(Square);
SLUICE_WIDENED(SquaredDifference);
SLUICE_WIDENED(Sub);
SLUICE_WIDENED(Sum);
SLUICE_WIDENED(Tanh);
SLUICE_WIDENED(TanhGrad);
SLUICE_WIDENED(UnsortedSegmentMax);
SLUICE_WIDENED(UnsortedSegmentMin);
SLUICE_WIDENED(UnsortedSegmentProd);
SLUICE_WIDENED(UnsortedSegmentSum);
SLUICE_WIDENED(Xdivy);
SLUICE_WIDENED(Xlogy);
#undef SLUICE_WIDENED

}  // namespace sluice
