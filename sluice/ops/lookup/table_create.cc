// The ops that make tables. Each kind has two: V2 gives a resource handle, the
// older one a reference to a pair of strings.

#include <bit>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/lookup/table.h"
#include "sluice/ops/state/resource_kernel.h"

namespace sluice {
namespace {
namespace table_create {

class TableKernel : public SharedResourceKernel<LookupTable> {
 public:
  template <TableConfig::Kind kKind>
  struct Of {
    static absl::StatusOr<std::unique_ptr<Kernel>> Create(
        const KernelConstruction& node) {
      SLUICE_ASSIGN_OR_RETURN(ResourceName name,
                              NameResource(node, UnsharedName::kPrivate));
      TableConfig config;
      config.kind = kKind;
      config.name = name.name;
      config.key_dtype = node.attr<DType>("key_dtype");
      config.value_dtype = node.attr<DType>("value_dtype");
      if (const PartialShape* shape =
              node.node().attrs().Find<PartialShape>("value_shape")) {
        if (!shape->FullyDefined()) {
          return InvalidArgument("value_shape must be fully defined, got ",
                                 shape->DebugString());
        }
        SLUICE_ASSIGN_OR_RETURN(config.value_shape,
                                Shape::Create(shape->dims()));
      }
      if (kKind == TableConfig::Kind::kDense) {
        SLUICE_RETURN_IF_ERROR(CheckBuckets(node));
      }
      // Refuses the types at once, not at the first run.
      SLUICE_RETURN_IF_ERROR(LookupTable::Create(config).status());
      return std::make_unique<TableKernel>(node, std::move(name),
                                           std::move(config));
    }
  };

  TableKernel(const KernelConstruction& node, ResourceName name,
              TableConfig config)
      : SharedResourceKernel(node, std::move(name), kTableType),
        config_(std::move(config)) {}

 protected:
  absl::StatusOr<RefPtr<LookupTable>> MakeFor(
      const KernelContext& ctx) const override {
    TableConfig config = config_;
    if (config.kind == TableConfig::Kind::kDense) {
      SLUICE_RETURN_IF_ERROR(SetReservedKeys(ctx, &config));
    }
    return LookupTable::Create(std::move(config));
  }

  absl::Status Match(const LookupTable& existing, const Node&) const override {
    const TableConfig& there = existing.config();
    if (there.key_dtype != config_.key_dtype ||
        there.value_dtype != config_.value_dtype) {
      return InvalidArgument(
          "Conflicting key/value dtypes ", DTypeName(config_.key_dtype), "->",
          DTypeName(config_.value_dtype), " with ", DTypeName(there.key_dtype),
          "-", DTypeName(there.value_dtype), " for table ", config_.name);
    }
    if (there.kind == config_.kind &&
        there.value_shape == config_.value_shape) {
      return absl::OkStatus();
    }
    return InvalidArgument("Shared table '", config_.name,
                           "' is of another kind or has values of shape ",
                           there.value_shape.DebugString(), ", not ",
                           config_.value_shape.DebugString());
  }

 private:
  static absl::Status CheckBuckets(const KernelConstruction& node) {
    const int64_t buckets = node.attr<int64_t>("initial_num_buckets");
    if (buckets < 4 || !std::has_single_bit(static_cast<uint64_t>(buckets))) {
      return InvalidArgument(
          "Number of buckets must be at least 4 and a power of 2, got: ",
          buckets);
    }
    const float load = node.attr<float>("max_load_factor");
    if (load > 0 && load < 1) return absl::OkStatus();
    return InvalidArgument("max_load_factor must be between 0 and 1, got: ",
                           load);
  }

  static absl::Status SetReservedKeys(const KernelContext& ctx,
                                      TableConfig* config) {
    config->empty_key = ctx.input(0).Owned();
    config->key_shape = config->empty_key.shape();
    if (config->key_shape.rank() > 1) {
      return InvalidArgument(
          "Empty key must be a scalar or a vector, got "
          "shape ",
          config->key_shape.DebugString());
    }
    if (ctx.num_inputs() < 2) return absl::OkStatus();
    config->deleted_key = ctx.input(1).Owned();
    if (config->deleted_key.shape() != config->key_shape) {
      return InvalidArgument(
          "Empty and deleted keys must have same shape, got shapes: ",
          config->key_shape.DebugString(), " and ",
          config->deleted_key.shape().DebugString());
    }
    if (TensorsEqual(config->empty_key, config->deleted_key)) {
      return InvalidArgument("Empty and deleted keys cannot be equal");
    }
    return absl::OkStatus();
  }

  const TableConfig config_;
};

absl::Status StringHandleShape(ShapeContext& c) {
  c.set_output(0, {2});
  return absl::OkStatus();
}

}  // namespace table_create
}  // namespace

#define SLUICE_TABLE_ATTRS                         \
  .Attr("container: string = ''")                  \
      .Attr("shared_name: string = ''")            \
      .Attr("use_node_name_sharing: bool = false") \
      .Attr("key_dtype: type")                     \
      .Attr("value_dtype: type")
#define SLUICE_TABLE_OPS(NAME, MORE)                                          \
  SLUICE_OP(NAME)                                                             \
      .Output("table_handle: Ref(string)") SLUICE_TABLE_ATTRS MORE.Stateful() \
      .Shape(table_create::StringHandleShape)                                 \
      .NotDifferentiable();                                                   \
  SLUICE_OP(NAME##V2)                                                         \
      .Output("table_handle: resource") SLUICE_TABLE_ATTRS MORE.Stateful()    \
      .Shape(shapes::Scalar)                                                  \
      .NotDifferentiable()
#define SLUICE_NO_MORE
#define SLUICE_VALUE_SHAPE .Attr("value_shape: shape = {}")
#define SLUICE_DENSE_ATTRS                       \
  .Attr("value_shape: shape = {}")               \
      .Attr("initial_num_buckets: int = 131072") \
      .Attr("max_load_factor: float = 0.8")

SLUICE_TABLE_OPS(HashTable, SLUICE_NO_MORE);
SLUICE_TABLE_OPS(MutableHashTable, SLUICE_NO_MORE);
SLUICE_TABLE_OPS(MutableHashTableOfTensors, SLUICE_VALUE_SHAPE);

SLUICE_OP(MutableDenseHashTable)
    .Input("empty_key: key_dtype")
    .Output("table_handle: Ref(string)")  //
    SLUICE_TABLE_ATTRS SLUICE_DENSE_ATTRS.Stateful()
    .Shape(table_create::StringHandleShape)
    .NotDifferentiable();
SLUICE_OP(MutableDenseHashTableV2)
    .Input("empty_key: key_dtype")
    .Input("deleted_key: key_dtype")
    .Output("table_handle: resource")  //
    SLUICE_TABLE_ATTRS SLUICE_DENSE_ATTRS.Stateful()
    .Shape(shapes::Scalar)
    .NotDifferentiable();

#undef SLUICE_TABLE_ATTRS
#undef SLUICE_TABLE_OPS
#undef SLUICE_NO_MORE
#undef SLUICE_VALUE_SHAPE
#undef SLUICE_DENSE_ATTRS

#define SLUICE_TABLE_KERNELS(NAME, KIND)                                \
  SLUICE_KERNEL(NAME, kCpu)                                             \
      .Class<table_create::TableKernel::Of<TableConfig::Kind::KIND>>(); \
  SLUICE_KERNEL(NAME##V2, kCpu)                                         \
      .Class<table_create::TableKernel::Of<TableConfig::Kind::KIND>>()
SLUICE_TABLE_KERNELS(HashTable, kStatic);
SLUICE_TABLE_KERNELS(MutableHashTable, kMutable);
SLUICE_TABLE_KERNELS(MutableHashTableOfTensors, kMutable);
SLUICE_TABLE_KERNELS(MutableDenseHashTable, kDense);
#undef SLUICE_TABLE_KERNELS

}  // namespace sluice
