// Sparse tensors kept under numbers, so that queues, which hold dense tensors,
// can pass them on: AddSparseToTensorsMap, AddManySparseToTensorsMap,
// TakeManySparseFromTensorsMap.

#include <map>
#include <utility>

#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/sparse/sparse_parts.h"
#include "sluice/ops/state/resource_handle.h"

namespace sluice {
namespace {
namespace tensors_map {

// Thread-safe.
class TensorsMap : public Resource {
 public:
  explicit TensorsMap(std::string name) : name_(std::move(name)) {}

  int64_t Add(SparseParts parts) {
    parts.indices = parts.indices.Owned();
    parts.values = parts.values.Owned();
    parts.shape = parts.shape.Owned();
    MutexLock lock(mu_);
    tensors_.emplace(next_, std::move(parts));
    return next_++;
  }

  // They are gone afterwards.
  absl::StatusOr<std::vector<SparseParts>> Take(
      std::span<const int64_t> handles) {
    std::vector<SparseParts> taken;
    MutexLock lock(mu_);
    for (int64_t handle : handles) {
      const auto it = tensors_.find(handle);
      if (it == tensors_.end()) {
        return InvalidArgument("Unable to find SparseTensor: ", handle,
                               " in map: ", name_);
      }
      taken.push_back(std::move(it->second));
      tensors_.erase(it);
    }
    return taken;
  }

  std::string DebugString() const override {
    MutexLock lock(mu_);
    return StrCat("map of ", tensors_.size(), " sparse tensors");
  }

 private:
  const std::string name_;
  mutable Mutex mu_;
  int64_t next_ SLUICE_GUARDED_BY(mu_) = 0;
  std::map<int64_t, SparseParts> tensors_ SLUICE_GUARDED_BY(mu_);
};

// A kernel that knows its map's name.
template <absl::Status (*kWork)(KernelContext&, TensorsMap&)>
class MapKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    SLUICE_ASSIGN_OR_RETURN(ResourceName name,
                            NameResource(node, UnsharedName::kNodeName));
    return std::make_unique<MapKernel>(std::move(name));
  }
  explicit MapKernel(ResourceName name) : name_(std::move(name)) {}

  absl::Status Run(KernelContext& ctx) override {
    SLUICE_ASSIGN_OR_RETURN(const RefPtr<TensorsMap> map,
                            ctx.resources().LookupOrCreate<TensorsMap>(
                                name_.container, name_.name,
                                [&]() -> absl::StatusOr<RefPtr<TensorsMap>> {
                                  return MakeRef<TensorsMap>(name_.name);
                                }));
    return kWork(ctx, *map);
  }

 private:
  const ResourceName name_;
};

absl::Status Add(KernelContext& ctx, TensorsMap& map) {
  SLUICE_ASSIGN_OR_RETURN(SparseParts parts, SparseInput(ctx));
  ctx.set_output(0, Tensor::Scalar<int64_t>(map.Add(std::move(parts))));
  return absl::OkStatus();
}

absl::Status AddMany(KernelContext& ctx, TensorsMap& map) {
  SLUICE_ASSIGN_OR_RETURN(const SparseParts batch, SparseInput(ctx));
  SLUICE_ASSIGN_OR_RETURN(std::vector<SparseParts> rows, SparseRows(batch));
  SLUICE_ASSIGN_OR_RETURN(
      Tensor & handles,
      ctx.Output(0, Shape({static_cast<int64_t>(rows.size())})));
  for (size_t i = 0; i < rows.size(); ++i) {
    handles.mutable_data<int64_t>()[i] = map.Add(std::move(rows[i]));
  }
  return absl::OkStatus();
}

absl::Status TakeMany(KernelContext& ctx, TensorsMap& map) {
  const Tensor& handles = ctx.input(0);
  if (handles.rank() != 1) {
    return InvalidArgument(
        "sparse_handles should be a vector but received shape ",
        handles.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(const std::vector<SparseParts> rows,
                          map.Take(handles.data<int64_t>()));
  if (rows.empty()) {
    return InvalidArgument(
        "Must have at least 1 serialized SparseTensor, "
        "but input matrix has 0 rows");
  }
  SLUICE_ASSIGN_OR_RETURN(SparseParts batch,
                          StackSparse(rows, ctx.attr<DType>("dtype")));
  SetSparseOutputs(ctx, std::move(batch));
  return absl::OkStatus();
}

absl::Status CheckInputs(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  return c.WithRank(2, 1).status();
}

}  // namespace tensors_map
}  // namespace

SLUICE_OP(AddSparseToTensorsMap)
    .Input("sparse_indices: int64")
    .Input("sparse_values: T")
    .Input("sparse_shape: int64")
    .Output("sparse_handle: int64")
    .Attr("T: type")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape([](ShapeContext& c) -> absl::Status {
      SLUICE_RETURN_IF_ERROR(tensors_map::CheckInputs(c));
      return shapes::Scalar(c);
    })
    .NotDifferentiable();

SLUICE_OP(AddManySparseToTensorsMap)
    .Input("sparse_indices: int64")
    .Input("sparse_values: T")
    .Input("sparse_shape: int64")
    .Output("sparse_handles: int64")
    .Attr("T: type")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape([](ShapeContext& c) -> absl::Status {
      SLUICE_RETURN_IF_ERROR(tensors_map::CheckInputs(c));
      c.set_output(0, {-1});
      return absl::OkStatus();
    })
    .NotDifferentiable();

SLUICE_OP(TakeManySparseFromTensorsMap)
    .Input("sparse_handles: int64")
    .Output("sparse_indices: int64")
    .Output("sparse_values: dtype")
    .Output("sparse_shape: int64")
    .Attr("dtype: type")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape([](ShapeContext& c) -> absl::Status {
      SLUICE_RETURN_IF_ERROR(c.WithRank(0, 1).status());
      c.set_output(0, {-1, -1});
      c.set_output(1, {-1});
      c.set_output(2, {-1});
      return absl::OkStatus();
    })
    .NotDifferentiable();

SLUICE_KERNEL(AddSparseToTensorsMap, kCpu)
    .Class<tensors_map::MapKernel<tensors_map::Add>>();
SLUICE_KERNEL(AddManySparseToTensorsMap, kCpu)
    .Class<tensors_map::MapKernel<tensors_map::AddMany>>();
SLUICE_KERNEL(TakeManySparseFromTensorsMap, kCpu)
    .Class<tensors_map::MapKernel<tensors_map::TakeMany>>();

}  // namespace sluice
