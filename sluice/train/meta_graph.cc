#include "sluice/train/meta_graph.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <set>

#include "sluice/base/file.h"
#include "sluice/base/logging.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/variable.pb.h"
#include "sluice/train/saver.h"

namespace sluice {
namespace {

// What readers take the graph's op vocabulary from.
constexpr char kTensorFlowVersion[] = "1.15.5";

// Collections whose members are variables.
constexpr std::string_view kVariableKeys[] = {
    keys::kGlobalVariables,        keys::kLocalVariables,
    keys::kTrainableVariables,     keys::kModelVariables,
    keys::kMovingAverageVariables, keys::kGlobalStep};

// Keeps protobuf from logging by itself.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void ExportWithShapes(const Graph& graph, pb::GraphDef* def) {
  ExportOptions options;
  options.add_shapes = true;
  ExportGraphDef(graph, options, def);
}

std::string VariableBytes(const Variable& variable) {
  pb::VariableDef def;
  def.set_variable_name(TensorName(variable.ref()));
  if (variable.initializer() != nullptr) {
    def.set_initializer_name(variable.initializer()->name());
  }
  def.set_snapshot_name(TensorName(variable.value()));
  if (variable.initial_value()) {
    def.set_initial_value_name(TensorName(variable.initial_value()));
  }
  def.set_is_resource(variable.resource());
  def.set_trainable(variable.trainable());
  if (const SaveSlice* slice = variable.slice()) {
    pb::SaveSliceInfoDef* info = def.mutable_save_slice_info_def();
    info->set_full_name(slice->full_name);
    for (int i = 0; i < slice->full_shape.rank(); ++i) {
      info->add_full_shape(slice->full_shape.dim(i));
      info->add_var_offset(slice->offset[i]);
      info->add_var_shape(variable.shape().dim(i));
    }
  }
  return def.SerializeAsString();
}

void AddItem(const CollectionItem& item, pb::CollectionDef* def) {
  if (const auto* output = std::get_if<Output>(&item)) {
    def->mutable_node_list()->add_value(TensorName(*output));
  } else if (const auto* node = std::get_if<Node*>(&item)) {
    def->mutable_node_list()->add_value((*node)->name());
  } else if (const auto* variable = std::get_if<Variable>(&item)) {
    def->mutable_bytes_list()->add_value(VariableBytes(*variable));
  } else {
    def->mutable_bytes_list()->add_value(std::get<std::string>(item));
  }
}

void AddOpList(const pb::GraphDef& graph, pb::OpList* list) {
  std::set<std::string> used;
  for (const pb::NodeDef& node : graph.node()) used.insert(node.op());
  for (const pb::FunctionDef& function : graph.library().function()) {
    for (const pb::NodeDef& node : function.node_def()) used.insert(node.op());
  }
  for (const std::string& name : used) {
    if (const OpInfo* op = OpRegistry::Global().Find(name)) {
      OpDefToProto(op->def, list->add_op());
    }
  }
}

// A name of the meta graph below `scope`, which is empty or ends in '/'.
std::string Below(const std::string& scope, const std::string& name) {
  return name.empty() ? name : StrCat(scope, name);
}

// "" or with a '/' at its end.
std::string ScopePrefix(const std::string& scope) {
  return scope.empty() || scope.ends_with('/') ? scope : StrCat(scope, "/");
}

absl::StatusOr<SaveSlice> SliceFromDef(const pb::SaveSliceInfoDef& def,
                                       const std::string& scope) {
  if (def.var_offset_size() != def.full_shape_size()) {
    return InvalidArgument("a part of ", def.full_name(), " has ",
                           def.var_offset_size(), " offsets for ",
                           def.full_shape_size(), " dimensions");
  }
  SaveSlice slice;
  slice.full_name = Below(scope, def.full_name());
  for (const int64_t dim : def.full_shape()) {
    if (dim < 0) {
      return InvalidArgument(def.full_name(), " has a dimension of ", dim);
    }
    slice.full_shape.AddDim(dim);
  }
  slice.offset.assign(def.var_offset().begin(), def.var_offset().end());
  return slice;
}

absl::StatusOr<Variable> VariableFromBytes(const std::string& bytes,
                                           const std::string& scope,
                                           Graph* graph) {
  pb::VariableDef def;
  if (!def.ParseFromString(bytes)) {
    return InvalidArgument("a variable of the meta graph does not parse");
  }
  Variable::Nodes nodes;
  SLUICE_ASSIGN_OR_RETURN(nodes.ref,
                          graph->FindOutput(Below(scope, def.variable_name())));
  SLUICE_ASSIGN_OR_RETURN(nodes.value,
                          graph->FindOutput(Below(scope, def.snapshot_name())));
  if (!def.initial_value_name().empty()) {
    SLUICE_ASSIGN_OR_RETURN(
        nodes.initial_value,
        graph->FindOutput(Below(scope, def.initial_value_name())));
  }
  nodes.initializer = graph->FindNode(Below(scope, def.initializer_name()));
  nodes.trainable = def.trainable();
  if (def.has_save_slice_info_def()) {
    SLUICE_ASSIGN_OR_RETURN(nodes.slice,
                            SliceFromDef(def.save_slice_info_def(), scope));
  }
  Variable variable(nodes);
  if (nodes.slice &&
      (!variable.shape().FullyDefined() ||
       variable.shape().rank() != nodes.slice->full_shape.rank())) {
    return InvalidArgument("variable ", variable.name(), " of shape ",
                           variable.shape().DebugString(),
                           " is no part of one of shape ",
                           nodes.slice->full_shape.DebugString());
  }
  return variable;
}

// A name with ':' is a tensor, one without an op.
absl::StatusOr<CollectionItem> NodeItem(const std::string& name, Graph* graph) {
  if (name.find(':') != std::string::npos) {
    SLUICE_ASSIGN_OR_RETURN(Output output, graph->FindOutput(name));
    return CollectionItem(output);
  }
  Node* node = graph->FindNode(name);
  if (node == nullptr) {
    return InvalidArgument("a collection of the meta graph names '", name,
                           "', which is not in its graph");
  }
  return CollectionItem(node);
}

absl::Status ReadCollection(const std::string& key,
                            const pb::CollectionDef& def,
                            const std::string& scope, Graph* graph) {
  Collections& collections = Collections::Of(*graph);
  const bool variables = std::ranges::count(kVariableKeys, key) > 0;
  for (const std::string& bytes : def.bytes_list().value()) {
    if (variables) {
      SLUICE_ASSIGN_OR_RETURN(Variable variable,
                              VariableFromBytes(bytes, scope, graph));
      collections.Add(key, variable);
    } else {
      collections.Add(key, bytes);
    }
  }
  for (const std::string& name : def.node_list().value()) {
    SLUICE_ASSIGN_OR_RETURN(CollectionItem item,
                            NodeItem(Below(scope, name), graph));
    collections.Add(key, std::move(item));
  }
  return absl::OkStatus();
}

}  // namespace

pb::MetaGraphDef ExportMetaGraph(Graph& graph, const pb::SaverDef* saver) {
  pb::MetaGraphDef meta;
  ExportWithShapes(graph, meta.mutable_graph_def());
  auto* info = meta.mutable_meta_info_def();
  info->set_tensorflow_version(kTensorFlowVersion);
  info->set_tensorflow_git_version("sluice");
  AddOpList(meta.graph_def(), info->mutable_stripped_op_list());
  if (saver != nullptr) *meta.mutable_saver_def() = *saver;
  for (const auto& [key, items] : Collections::Of(graph).all()) {
    pb::CollectionDef& def = (*meta.mutable_collection_def())[key];
    for (const CollectionItem& item : items) AddItem(item, &def);
  }
  return meta;
}

absl::Status ImportMetaGraph(const pb::MetaGraphDef& meta, Graph* graph,
                             const ImportMetaGraphOptions& options) {
  ImportOptions import;
  import.prefix = options.import_scope;
  import.input_map = options.input_map;
  if (options.clear_devices) {
    pb::GraphDef anywhere = meta.graph_def();
    for (pb::NodeDef& node : *anywhere.mutable_node()) node.clear_device();
    SLUICE_RETURN_IF_ERROR(ImportGraphDef(anywhere, import, graph));
  } else {
    SLUICE_RETURN_IF_ERROR(ImportGraphDef(meta.graph_def(), import, graph));
  }
  const std::string scope = ScopePrefix(options.import_scope);
  for (const auto& [key, def] : meta.collection_def()) {
    SLUICE_RETURN_IF_ERROR(Annotate(ReadCollection(key, def, scope, graph),
                                    StrCat("collection ", key)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Saver>> ImportMetaGraphFile(
    const std::string& path, Graph* graph,
    const ImportMetaGraphOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(const pb::MetaGraphDef meta, ReadMetaGraph(path));
  SLUICE_RETURN_IF_ERROR(ImportMetaGraph(meta, graph, options));
  if (meta.has_saver_def()) {
    const std::string scope = ScopePrefix(options.import_scope);
    pb::SaverDef def = meta.saver_def();
    def.set_filename_tensor_name(Below(scope, def.filename_tensor_name()));
    def.set_save_tensor_name(Below(scope, def.save_tensor_name()));
    def.set_restore_op_name(Below(scope, def.restore_op_name()));
    return Saver::FromDef(*graph, def);
  }
  if (GlobalVariables(*graph).empty()) return nullptr;
  const Scope root(*graph);
  auto saver = std::make_unique<Saver>(root);
  if (!root.ok()) return root.status();
  return saver;
}

absl::StatusOr<pb::MetaGraphDef> ReadMetaGraph(const std::string& path) {
  if (!RealFileSystem().Exists(path)) {
    return NotFound("File ", path, " does not exist.");
  }
  SLUICE_ASSIGN_OR_RETURN(const std::string bytes,
                          RealFileSystem().ReadFile(path));
  pb::MetaGraphDef meta;
  if (meta.ParseFromString(bytes)) return meta;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(bytes, &meta)) return meta;
  return InvalidArgument("Cannot parse file ", path,
                         ": it is no meta graph (as text: ", error.text(),
                         ").");
}

absl::Status WriteGraph(Graph& graph, const std::string& dir,
                        const std::string& name) {
  pb::GraphDef def;
  ExportWithShapes(graph, &def);
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(def, &text)) {
    return Internal("the graph does not print");
  }
  SLUICE_RETURN_IF_ERROR(RealFileSystem().MkDirs(dir));
  return RealFileSystem().WriteFileAtomically(JoinPath(dir, name), text);
}

}  // namespace sluice
