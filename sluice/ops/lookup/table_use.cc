// Find, insert, remove, export, import, size and initialization of tables; each
// for both forms of handles.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/io/blocking_kernel.h"
#include "sluice/ops/lookup/table.h"
#include "sluice/ops/lookup/text_file.h"
#include "sluice/ops/state/resource_handle.h"
#include "sluice/ops/state/signature.h"

namespace sluice {
namespace {
namespace table_use {

// Which of a table's types follow the handle among a node's inputs, and which
// are its outputs.
enum Types { kNone, kKeys, kKeysAndValues, kValues };

std::vector<DType> TypesOf(const LookupTable& table, Types types) {
  std::vector<DType> list;
  if (types == kKeys || types == kKeysAndValues) {
    list.push_back(table.config().key_dtype);
  }
  if (types == kValues || types == kKeysAndValues) {
    list.push_back(table.config().value_dtype);
  }
  return list;
}

// The table, if the node was built for its types.
absl::StatusOr<RefPtr<LookupTable>> FindTable(const KernelContext& ctx,
                                              Types inputs, Types outputs) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<LookupTable> table,
                          LookupResource<LookupTable>(ctx, 0, kTableType));
  std::vector<DType> expected = {ctx.node().input_type(0)};
  for (DType type : TypesOf(*table, inputs)) expected.push_back(type);
  SLUICE_RETURN_IF_ERROR(
      MatchSignature(ctx, expected, TypesOf(*table, outputs)));
  return table;
}

absl::Status Find(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table,
                          FindTable(ctx, kKeysAndValues, kValues));
  SLUICE_ASSIGN_OR_RETURN(Tensor values,
                          table->Find(ctx.input(1), ctx.input(2)));
  ctx.set_output(0, std::move(values));
  return absl::OkStatus();
}

absl::Status Insert(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table,
                          FindTable(ctx, kKeysAndValues, kNone));
  return table->Insert(ctx.input(1), ctx.input(2));
}

absl::Status Remove(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table,
                          FindTable(ctx, kKeys, kNone));
  return table->Remove(ctx.input(1));
}

absl::Status Import(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table,
                          FindTable(ctx, kKeysAndValues, kNone));
  return table->Import(ctx.input(1), ctx.input(2));
}

absl::Status InitializeFromTensors(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table,
                          FindTable(ctx, kKeysAndValues, kNone));
  if (table->config().kind != TableConfig::Kind::kStatic) {
    return InvalidArgument("Table ", table->config().name,
                           " is not one that is initialized");
  }
  if (ctx.input(1).rank() != 1) {
    return InvalidArgument("Keys must be a vector, but received shape ",
                           ctx.input(1).shape().DebugString());
  }
  return table->Import(ctx.input(1), ctx.input(2));
}

absl::Status InitializeFromFile(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table,
                          LookupResource<LookupTable>(ctx, 0, kTableType));
  const Tensor& name = ctx.input(1);
  if (name.size() != 1) {
    return InvalidArgument("filename should be a single string, but got ",
                           name.size());
  }
  if (table->config().kind != TableConfig::Kind::kStatic) {
    return InvalidArgument("Table ", table->config().name,
                           " is not one that is initialized");
  }
  TextFileColumns columns;
  columns.key_index = ctx.attr<int64_t>("key_index");
  columns.value_index = ctx.attr<int64_t>("value_index");
  columns.vocab_size = ctx.attr<int64_t>("vocab_size");
  const std::string delimiter = ctx.attr<std::string>("delimiter");
  if (delimiter.size() != 1) {
    return InvalidArgument("delimiter should be only 1 char");
  }
  columns.delimiter = delimiter[0];
  return FillFromTextFile(ctx.device().files(), name.data<std::string>()[0],
                          columns, table.get());
}

absl::Status Export(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table,
                          FindTable(ctx, kNone, kKeysAndValues));
  SLUICE_ASSIGN_OR_RETURN(auto entries, table->Export());
  ctx.set_output(0, std::move(entries.first));
  ctx.set_output(1, std::move(entries.second));
  return absl::OkStatus();
}

absl::Status Size(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<LookupTable> table,
                          LookupResource<LookupTable>(ctx, 0, kTableType));
  ctx.set_output(0, Tensor::Scalar<int64_t>(table->size()));
  return absl::OkStatus();
}

// A vector or scalar of keys has that many values; what a default value's shape
// is tells the rest.
absl::Status FindShape(ShapeContext& c) {
  const PartialShape& missing = c.input(2);
  const PartialShape& keys = c.input(1);
  if (!missing.known_rank() || missing.rank() != 0) {
    // Keys may be vectors, and values too.
    return shapes::Unknown(c);
  }
  c.set_output(0, keys);
  return absl::OkStatus();
}

absl::Status ExportShape(ShapeContext& c) {
  c.set_output(0, PartialShape());
  c.set_output(1, PartialShape());
  return absl::OkStatus();
}

}  // namespace table_use
}  // namespace

// Both forms of an op on a table.
#define SLUICE_TABLE_USE(NAME, ARGS)                                           \
  SLUICE_OP(NAME).Input("table_handle: Ref(string)") ARGS.NotDifferentiable(); \
  SLUICE_OP(NAME##V2)                                                          \
      .Input("table_handle: resource") ARGS.Stateful()                         \
      .NotDifferentiable()

#define SLUICE_FIND_ARGS            \
  .Input("keys: Tin")               \
      .Input("default_value: Tout") \
      .Output("values: Tout")       \
      .Attr("Tin: type")            \
      .Attr("Tout: type")           \
      .Shape(table_use::FindShape)
#define SLUICE_INSERT_ARGS   \
  .Input("keys: Tin")        \
      .Input("values: Tout") \
      .Attr("Tin: type")     \
      .Attr("Tout: type")    \
      .Shape(shapes::NoOutputs)
#define SLUICE_INITIALIZE_ARGS \
  .Input("keys: Tkey")         \
      .Input("values: Tval")   \
      .Attr("Tkey: type")      \
      .Attr("Tval: type")      \
      .Shape(shapes::NoOutputs)
#define SLUICE_EXPORT_ARGS       \
  .Output("keys: Tkeys")         \
      .Output("values: Tvalues") \
      .Attr("Tkeys: type")       \
      .Attr("Tvalues: type")     \
      .Shape(table_use::ExportShape)
#define SLUICE_FILE_ARGS                  \
  .Input("filename: string")              \
      .Attr("key_index: int >= -2")       \
      .Attr("value_index: int >= -2")     \
      .Attr("vocab_size: int >= -1 = -1") \
      .Attr("delimiter: string = '\\t'")  \
      .Shape([](ShapeContext& c) { return c.WithRank(1, 0).status(); })
#define SLUICE_SIZE_ARGS .Output("size: int64").Shape(shapes::Scalar)

SLUICE_TABLE_USE(LookupTableFind, SLUICE_FIND_ARGS);
SLUICE_TABLE_USE(LookupTableInsert, SLUICE_INSERT_ARGS);
SLUICE_TABLE_USE(LookupTableImport, SLUICE_INSERT_ARGS);
SLUICE_TABLE_USE(LookupTableExport, SLUICE_EXPORT_ARGS);
SLUICE_TABLE_USE(LookupTableSize, SLUICE_SIZE_ARGS);
SLUICE_TABLE_USE(InitializeTable, SLUICE_INITIALIZE_ARGS);
SLUICE_TABLE_USE(InitializeTableFromTextFile, SLUICE_FILE_ARGS);

#undef SLUICE_TABLE_USE
#undef SLUICE_FIND_ARGS
#undef SLUICE_INSERT_ARGS
#undef SLUICE_INITIALIZE_ARGS
#undef SLUICE_EXPORT_ARGS
#undef SLUICE_FILE_ARGS
#undef SLUICE_SIZE_ARGS

SLUICE_OP(LookupTableRemoveV2)
    .Input("table_handle: resource")
    .Input("keys: Tin")
    .Attr("Tin: type")
    .Stateful()
    .Shape(shapes::NoOutputs)
    .NotDifferentiable();

#define SLUICE_TABLE_KERNELS(NAME, FUNCTION)               \
  SLUICE_KERNEL(NAME, kCpu).Function(table_use::FUNCTION); \
  SLUICE_KERNEL(NAME##V2, kCpu).Function(table_use::FUNCTION)
SLUICE_TABLE_KERNELS(LookupTableFind, Find);
SLUICE_TABLE_KERNELS(LookupTableInsert, Insert);
SLUICE_TABLE_KERNELS(LookupTableImport, Import);
SLUICE_TABLE_KERNELS(LookupTableExport, Export);
SLUICE_TABLE_KERNELS(LookupTableSize, Size);
SLUICE_TABLE_KERNELS(InitializeTable, InitializeFromTensors);
#undef SLUICE_TABLE_KERNELS

SLUICE_KERNEL(LookupTableRemoveV2, kCpu).Function(table_use::Remove);
SLUICE_KERNEL(InitializeTableFromTextFile, kCpu)
    .Class<BlockingKernel<table_use::InitializeFromFile>>();
SLUICE_KERNEL(InitializeTableFromTextFileV2, kCpu)
    .Class<BlockingKernel<table_use::InitializeFromFile>>();

}  // namespace sluice
