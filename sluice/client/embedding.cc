#include "sluice/client/embedding.h"

#include <algorithm>

#include "sluice/base/status.h"
#include "sluice/client/op_call.h"
#include "sluice/client/partitioners.h"

namespace sluice {
namespace {

// The rows of one part, read where it lives.
Output Gather(const Scope& scope, const Variable& part, Output ids) {
  const Scope beside = scope.Colocate(part.node());
  if (!part.resource()) {
    return OpCall(beside, "GatherV2").In(part.value()).In(ids).In(0).One();
  }
  return beside.Add("ResourceGather", {part.ref(), ids},
                    {{"dtype", part.dtype()}});
}

Output Binary(const Scope& scope, const char* op, const char* name,
              const Input& x, const Input& y) {
  return OpCall(scope.Named(name), op).In(x).In(y).One();
}

// Which part each id is in, and which row of it.
struct Places {
  Output part, row;
};

Places ByMod(const Scope& scope, Output ids, int64_t parts) {
  Places places;
  places.part = Binary(scope, "FloorMod", "mod", ids, parts);
  places.row = Binary(scope, "FloorDiv", "floordiv", ids, parts);
  return places;
}

Places ByDiv(const Scope& scope, Output ids, int64_t parts, int64_t total) {
  const int64_t rows = total / parts, extras = total % parts;
  // The first `extras` parts have rows + 1.
  const Output in_long = Binary(scope, "FloorDiv", "floordiv", ids, rows + 1);
  const Output rest = Binary(scope, "Sub", "sub", ids, extras);
  const Output in_short =
      Binary(scope, "FloorDiv", "floordiv", rest, std::max<int64_t>(rows, 1));
  Places places;
  places.part = scope.Add("Maximum", {in_long, in_short});
  const Output is_long = Binary(scope, "Less", "Less", places.part, extras);
  const Output of_long = Binary(scope, "FloorMod", "mod", ids, rows + 1);
  const Output of_short =
      Binary(scope, "FloorMod", "mod", rest, std::max<int64_t>(rows, 1));
  places.row = scope.Add("Select", {is_long, of_long, of_short});
  return places;
}

absl::StatusOr<int64_t> TotalRows(const std::vector<Variable>& table) {
  int64_t total = 0;
  for (const Variable& part : table) {
    const PartialShape shape = part.shape();
    if (!shape.known_rank() || shape.rank() < 1 || shape.dim(0) < 0) {
      return InvalidArgument("The number of rows of ", part.name(),
                             " of shape ", shape.DebugString(),
                             " must be known");
    }
    total += shape.dim(0);
  }
  return total;
}

// [shape of ids, a row of the table].
Output ResultShape(const Scope& scope, Output ids, const Variable& part) {
  const Output outer = scope.Add("Shape", {ids});
  const PartialShape shape = part.shape();
  std::vector<int32_t> row;
  for (int i = 1; i < shape.rank(); ++i) {
    row.push_back(static_cast<int32_t>(shape.dim(i)));
  }
  return OpCall(scope.Named("concat"), "ConcatV2")
      .In(InputList({outer, Literal(row)}))
      .In(0)
      .One();
}

}  // namespace

std::vector<Variable> PartitionedVariable(
    const Scope& scope, const Shape& shape, int parts,
    const std::function<Initializer(const Shape& part)>& initializer,
    const VariableOptions& options) {
  if (parts < 1 || shape.rank() < 1 || shape.dim(0) < parts) {
    scope.Fail(InvalidArgument("cannot cut a variable of shape ",
                               shape.DebugString(), " into ", parts,
                               " parts along its first dimension"));
    return {};
  }
  const Scope whole = scope.NameScope(
      scope.next_name().empty() ? "PartitionedVariable" : scope.next_name());
  std::string name = whole.context().name_scope;
  if (name.ends_with('/')) name.pop_back();
  std::vector<int> cuts(shape.rank(), 1);
  cuts[0] = parts;
  std::vector<Variable> made;
  for (VariablePart& part : CutVariable(name, shape, cuts)) {
    VariableOptions one = options;
    one.slice = std::move(part.slice);
    made.emplace_back(whole.Named(part.name), initializer(part.shape), one);
    if (!whole.ok()) return {};
  }
  return made;
}

namespace nn {

Output EmbeddingLookup(const Scope& outer, const std::vector<Variable>& table,
                       const Input& ids, EmbeddingLookupOptions options) {
  if (table.empty()) {
    outer.Fail(InvalidArgument("Need at least one param"));
    return Output();
  }
  if (table.size() == 1) return EmbeddingLookup(outer, table[0], ids);
  const Scope scope = outer.NameScope(
      outer.next_name().empty() ? "embedding_lookup" : outer.next_name());
  const absl::StatusOr<int64_t> total = TotalRows(table);
  if (!total.ok()) {
    scope.Fail(total.status());
    return Output();
  }
  const auto parts = static_cast<int64_t>(table.size());
  const Output given = AsOutput(scope, ids, "ids");
  const Output flat =
      OpCall(scope, "Reshape").In(given).In(std::vector<int32_t>{-1}).One();
  const Output count = scope.Add("Size", {flat});
  const Output at =
      OpCall(scope.Named("range"), "Range").In(0).In(count).In(1).One();
  const Places places = options.strategy == PartitionStrategy::kMod
                            ? ByMod(scope, flat, parts)
                            : ByDiv(scope, flat, parts, *total);
  if (!scope.ok()) return Output();
  Output part = places.part;
  if (TypeOf(part) != DType::kInt32) {
    part = scope.Add("Cast", {part}, {{"DstT", DType::kInt32}});
  }
  const AttrMap split = {{"num_partitions", parts}};
  const std::vector<Output> rows =
      scope.AddMulti("DynamicPartition", {places.row, part}, split);
  const std::vector<Output> positions =
      scope.AddMulti("DynamicPartition", {at, part}, split);
  if (!scope.ok()) return Output();
  std::vector<Output> inputs = positions;
  for (size_t i = 0; i < table.size(); ++i) {
    inputs.push_back(Gather(scope, table[i], rows[i]));
  }
  const Output found = scope.Named(scope.context().name_scope)
                           .Add("ParallelDynamicStitch", inputs);
  if (!scope.ok()) return Output();
  return scope.Add("Reshape", {found, ResultShape(scope, given, table[0])});
}

Output EmbeddingLookup(const Scope& outer, const Variable& table,
                       const Input& ids) {
  const Scope scope = outer.NameScope(
      outer.next_name().empty() ? "embedding_lookup" : outer.next_name());
  const Output given = AsOutput(scope, ids, "ids");
  const Output rows =
      Gather(scope.Named(scope.context().name_scope), table, given);
  return scope.Add("Identity", {rows});
}

}  // namespace nn
}  // namespace sluice
