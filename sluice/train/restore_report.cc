#include "sluice/train/restore_report.h"

#include <set>
#include <vector>

#include "sluice/base/status.h"
#include "sluice/io/checkpoint_reader.h"

namespace sluice {
namespace {

// A message need not name them all.
constexpr int kMaxLines = 20;

// The assignments that run when `node` does.
void CollectAssigns(const Node* node, std::set<const Node*>* seen,
                    std::vector<const Node*>* assigns) {
  if (node == nullptr || !seen->insert(node).second) return;
  if (node->type() == "Assign" || node->type() == "AssignVariableOp") {
    assigns->push_back(node);
    return;
  }
  for (const Node* before : node->control_inputs()) {
    CollectAssigns(before, seen, assigns);
  }
}

// The output of RestoreV2 that `value` is, if it is one as it was read.
Output Restored(Output value) {
  while (value.node != nullptr && value.node->type() == "Identity") {
    value = value.node->input(0);
  }
  const bool found = value.node != nullptr && value.node->type() == "RestoreV2";
  return found ? value : Output();
}

std::string ConstantString(Output list, int i) {
  if (list.node->type() != "Const") return "";
  const Tensor value = list.node->attr<Tensor>("value");
  if (value.dtype() != DType::kString || i >= value.size()) return "";
  return value.data<std::string>()[i];
}

struct Wanted {
  DType dtype = DType::kInvalid;
  PartialShape shape;
};

Wanted WantedBy(const Node& assign) {
  const Output target = assign.input(0);
  if (assign.type() == "Assign") {
    return {BaseType(TypeOf(target)), ShapeOf(target)};
  }
  const HandleShape& handle = target.node->output_handle(target.index);
  return {handle.dtype, handle.shape};
}

std::string Compare(const Node& assign, CheckpointReader& reader,
                    const std::string& prefix) {
  const Output restored = Restored(assign.input(1));
  if (!restored) return "";
  const std::string name =
      ConstantString(restored.node->input(1), restored.index);
  const absl::StatusOr<CheckpointTensor> stored = reader.Find(name);
  if (!stored.ok()) return "";
  Wanted wanted = WantedBy(assign);
  // A part of a variable: what counts is the shape of the whole.
  const std::string slice =
      ConstantString(restored.node->input(2), restored.index);
  if (!slice.empty()) {
    const absl::StatusOr<ShapeAndSlice> at = ParseShapeAndSlice(slice);
    if (at.ok()) wanted.shape = at->full;
  }
  const bool same_type =
      wanted.dtype == DType::kInvalid || wanted.dtype == stored->dtype;
  if (same_type && wanted.shape.CompatibleWith(PartialShape(stored->shape)))
    return "";
  return StrCat("Tensor ", name, " of checkpoint ", prefix, " is ",
                DTypeName(stored->dtype), " ", stored->shape.DebugString(),
                ", the variable ", assign.input(0).node->name(), " is ",
                DTypeName(same_type ? stored->dtype : wanted.dtype), " ",
                wanted.shape.DebugString());
}

}  // namespace

std::string RestoreMismatches(const Graph& graph, const std::string& restore,
                              FileSystem& files, const std::string& prefix,
                              bool resources_only) {
  std::set<const Node*> seen;
  std::vector<const Node*> assigns;
  CollectAssigns(graph.FindNode(restore), &seen, &assigns);
  if (resources_only) {
    std::erase_if(assigns,
                  [](const Node* node) { return node->type() == "Assign"; });
  }
  if (assigns.empty()) return "";
  const auto reader = CheckpointReader::Open(files, prefix);
  if (!reader.ok()) return "";
  std::string text;
  int lines = 0;
  for (const Node* assign : assigns) {
    const std::string line = Compare(*assign, **reader, prefix);
    if (line.empty()) continue;
    if (++lines > kMaxLines) return StrCat(text, "and more\n");
    StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace sluice
