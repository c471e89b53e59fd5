// ImportGraphDef: looks at names and edges first, then adds node after node; if
// one is bad, those added before are taken away again.
#include <charconv>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "sluice/base/status.h"
#include "sluice/graph/build_context.h"
#include "sluice/graph/device_name.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/graph_def.h"
#include "sluice/graph/import_order.h"
#include "sluice/graph/newer_attrs.h"
#include "sluice/proto/graph.pb.h"

namespace sluice {
namespace {

// The release whose behaviour we have, for texts that name it.
constexpr std::string_view kTensorFlowVersion = "1.15.5";
constexpr int kMinProducer = 0;
constexpr std::string_view kColocationPrefix = "loc:@";
constexpr std::string_view kOutputShapes = "_output_shapes";
// Every output takes memory, and an attribute can ask for very many.
constexpr int64_t kMaxOutputs = 1 << 24;
constexpr int kControl = -1;

// "a", "a:1" or "^a". Whatever else it may be is the name of a node.
struct TensorId {
  std::string_view node;
  int output;  // Or kControl.
};

TensorId ParseTensorId(std::string_view text) {
  if (text.starts_with('^')) return {text.substr(1), kControl};
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {text, 0};
  const std::string_view digits = text.substr(colon + 1);
  int output = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), output);
  if (error != std::errc() || end != digits.data() + digits.size() ||
      digits.starts_with('-')) {
    return {text, 0};
  }
  return {text.substr(0, colon), output};
}

// [A-Za-z0-9.][A-Za-z0-9_./-]*, and pieces like that joined by '>'.
bool IsValidName(std::string_view name, bool allow_internal) {
  if (name.empty()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const unsigned char c = name[i];
    if (isalnum(c) || c == '.') continue;
    if (i == 0) {
      if (c != '_' || !allow_internal) return false;
    } else if (c != '_' && c != '/' && c != '-' && c != '>') {
      return false;
    }
  }
  return true;
}

bool IsBackEdge(const pb::NodeDef& from, const pb::NodeDef& to) {
  return (to.op() == "Merge" || to.op() == "RefMerge") &&
         (from.op() == "NextIteration" || from.op() == "RefNextIteration");
}

int64_t BytesOf(const Tensor& tensor) {
  const size_t element = ElementSize(tensor.dtype());
  return tensor.size() * (element > 0 ? element : sizeof(std::string));
}

int64_t TensorBytes(const AttrValue& value) {
  if (const Tensor* tensor = value.get<Tensor>()) return BytesOf(*tensor);
  int64_t bytes = 0;
  if (const AttrList* list = value.get<AttrList>()) {
    for (const Tensor& tensor : list->tensors) bytes += BytesOf(tensor);
  }
  return bytes;
}

absl::Status CheckVersions(const pb::VersionDef& versions) {
  if (versions.producer() < kMinProducer) {
    return InvalidArgument("GraphDef producer version ", versions.producer(),
                           " below min producer ", kMinProducer,
                           " supported by TensorFlow ", kTensorFlowVersion,
                           ".  Please regenerate your graph.");
  }
  if (versions.min_consumer() > kGraphDefVersion) {
    return InvalidArgument("GraphDef min consumer version ",
                           versions.min_consumer(), " above current version ",
                           kGraphDefVersion, " for TensorFlow ",
                           kTensorFlowVersion, ".  Please upgrade TensorFlow.");
  }
  for (int bad : versions.bad_consumers()) {
    if (bad != kGraphDefVersion) continue;
    return InvalidArgument("GraphDef disallows consumer version ", bad,
                           ".  Please upgrade TensorFlow: this version is "
                           "likely buggy.");
  }
  return absl::OkStatus();
}

// One import. `def` is not changed while it runs, so views into it stay valid.
class Importer {
 public:
  Importer(const pb::GraphDef& def, const ImportOptions& options, Graph* graph)
      : def_(def), options_(options), graph_(*graph) {}

  absl::Status Run(ImportResults* results) {
    results->first_node = graph_.num_nodes();
    SLUICE_RETURN_IF_ERROR(CheckVersions(def_.versions()));
    SLUICE_RETURN_IF_ERROR(ReadInputMap());
    SLUICE_RETURN_IF_ERROR(IndexNames());
    SLUICE_RETURN_IF_ERROR(ChooseNames());
    const FunctionLibrary functions = graph_.functions();
    const absl::Status status = AddAll(results);
    if (!status.ok()) {
      graph_.Truncate(results->first_node);
      graph_.functions() = functions;
      return status;
    }
    MergeVersions(results->first_node == 0);
    for (int id = results->first_node; id < graph_.num_nodes(); ++id) {
      graph_.build().MarkUsed(graph_.node(id)->name());
    }
    return absl::OkStatus();
  }

 private:
  struct Mapped {
    Output output;
    bool used = false;
  };
  // Where an input comes from: a node of the file, or something in the graph.
  struct Edge {
    int node = -1;
    int output = 0;  // Or kControl.
    Output outside;
    bool back = false;
  };

  absl::Status ReadInputMap();
  absl::Status IndexNames();
  absl::Status ChooseNames();
  std::string UniqueName(const std::string& name) const;
  absl::Status SkipMappedNodes();
  absl::StatusOr<Edge> ReadInput(int node, std::string_view text);
  absl::Status ReadEdges();
  absl::StatusOr<std::vector<int>> Order() const;
  absl::Status AddAll(ImportResults* results);
  absl::Status AddOne(int index);
  absl::Status ReadAttrs(int index, AttrMap* attrs, AttrList* output_shapes);
  absl::Status RenameColocation(int index, AttrMap* attrs) const;
  absl::Status CheckDevice(int index, const std::string& device);
  void ReadInputs(int index, NodeSpec* spec) const;
  absl::Status AddBackEdges();
  absl::Status CheckInputMapUsed() const;
  absl::Status FindReturns(ImportResults* results);
  void MergeVersions(bool first);

  const Output* FindMapped(const TensorId& id);
  const std::string& NameOf(int index) const {
    return names_.empty() ? def_.node(index).name() : names_[index];
  }
  std::span<const Edge> EdgesOf(int index) const {
    return {edges_.data() + first_edge_[index],
            edges_.data() + first_edge_[index + 1]};
  }

  const pb::GraphDef& def_;
  const ImportOptions& options_;
  Graph& graph_;

  std::map<std::pair<std::string, int>, Mapped> input_map_;
  absl::flat_hash_map<std::string, int> index_;
  std::vector<std::string> names_;  // Empty: as they stand in the file.
  std::vector<bool> skipped_;
  std::vector<Edge> edges_;
  std::vector<int> first_edge_ = {0};
  std::vector<Node*> nodes_;  // By index in the file.
  int64_t tensor_bytes_ = 0;
  int64_t outputs_ = 0;
  std::string checked_device_;  // The last one that was fine.
};

absl::Status Importer::ReadInputMap() {
  for (const auto& [name, output] : options_.input_map) {
    if (!output || &output.node->graph() != &graph_) {
      return InvalidArgument("input_map maps '", name,
                             "' to something that is not in the graph");
    }
    const TensorId id = ParseTensorId(name);
    input_map_[{std::string(id.node), id.output}] = {output};
  }
  return absl::OkStatus();
}

const Output* Importer::FindMapped(const TensorId& id) {
  if (input_map_.empty()) return nullptr;
  auto it = input_map_.find({std::string(id.node), id.output});
  if (it == input_map_.end()) return nullptr;
  it->second.used = true;
  return &it->second.output;
}

absl::Status Importer::IndexNames() {
  index_.reserve(def_.node_size());
  for (int i = 0; i < def_.node_size(); ++i) {
    const std::string& name = def_.node(i).name();
    if (!IsValidName(name, options_.allow_internal)) {
      return InvalidArgument("Node '", name,
                             "': Node name contains invalid characters");
    }
    if (!index_.emplace(name, i).second) {
      return InvalidArgument("Node '", name, "' is not unique");
    }
  }
  return absl::OkStatus();
}

std::string Importer::UniqueName(const std::string& name) const {
  std::string unique = name;
  for (int i = 1;
       graph_.FindNode(unique) != nullptr || (i > 1 && index_.contains(unique));
       ++i) {
    unique = StrCat(name, "_", i);
  }
  return unique;
}

absl::Status Importer::ChooseNames() {
  std::string prefix = options_.prefix;
  if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
  if (!prefix.empty() && !IsValidName(prefix, options_.allow_internal)) {
    return InvalidArgument("Imported node name prefix '", prefix,
                           "' would lead to invalid node names");
  }
  absl::flat_hash_set<std::string> taken;
  if (!prefix.empty() || options_.uniquify_names) {
    names_.reserve(def_.node_size());
    for (const auto& node : def_.node()) {
      names_.push_back(prefix + node.name());
      if (!options_.uniquify_names) continue;
      // Two nodes may want the same free name: "a" made unique, and "a_1".
      const std::string base = names_.back();
      std::string& name = names_.back();
      name = UniqueName(base);
      for (int i = 1; !taken.insert(name).second; ++i) {
        name = UniqueName(StrCat(base, "_", i));
      }
    }
  }
  if (options_.uniquify_names) return absl::OkStatus();
  for (int i = 0; i < def_.node_size(); ++i) {
    if (graph_.FindNode(NameOf(i)) == nullptr) continue;
    if (options_.extend) {
      return InvalidArgument("GraphDef argument to Extend includes node '",
                             NameOf(i),
                             "', which was created by a previous call to "
                             "Create or Extend in this session.");
    }
    return InvalidArgument("Node name '", NameOf(i),
                           "' already exists in the Graph");
  }
  return absl::OkStatus();
}

absl::Status Importer::SkipMappedNodes() {
  skipped_.resize(def_.node_size());
  if (!options_.skip_mapped_nodes) return absl::OkStatus();
  for (int i = 0; i < def_.node_size(); ++i) {
    const std::string& name = def_.node(i).name();
    if (!input_map_.contains({name, 0})) continue;
    AttrMap attrs;
    AttrList shapes;
    SLUICE_RETURN_IF_ERROR(ReadAttrs(i, &attrs, &shapes));
    SLUICE_ASSIGN_OR_RETURN(const OpInfo* op, graph_.FindOp(def_.node(i).op()));
    SLUICE_RETURN_IF_ERROR(CheckAttrs(op->def, NameOf(i), &attrs));
    SLUICE_ASSIGN_OR_RETURN(const std::vector<DType> types,
                            ArgTypes(op->def.outputs, attrs));
    skipped_[i] = true;
    for (size_t output = 0; output < types.size(); ++output) {
      if (!input_map_.contains({name, static_cast<int>(output)})) {
        skipped_[i] = false;
        break;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Importer::Edge> Importer::ReadInput(int node,
                                                   std::string_view text) {
  const TensorId id = ParseTensorId(text);
  Edge edge;
  edge.output = id.output;
  if (const Output* mapped = FindMapped(id)) {
    edge.outside = *mapped;
    return edge;
  }
  if (auto it = index_.find(ToAbsl(id.node)); it != index_.end()) {
    if (!skipped_[it->second]) {
      edge.node = it->second;
      edge.back = id.output != kControl &&
                  IsBackEdge(def_.node(edge.node), def_.node(node));
      return edge;
    }
    // Only a control edge can come here; it goes to what replaces the node.
    if (const Output* mapped = FindMapped({id.node, 0})) {
      edge.outside = *mapped;
      if (id.output == kControl) return edge;
    }
  } else if (options_.extend) {
    if (Node* existing = graph_.FindNode(id.node)) {
      edge.outside = {existing, std::max(id.output, 0)};
      return edge;
    }
  }
  return InvalidArgument("Node '", def_.node(node).name(),
                         "': Unknown input node '",
                         text.starts_with('^') ? text.substr(1) : text, "'");
}

absl::Status Importer::ReadEdges() {
  first_edge_.reserve(def_.node_size() + 1);
  for (int i = 0; i < def_.node_size(); ++i) {
    bool control_seen = false;
    for (const std::string& input : def_.node(i).input()) {
      if (skipped_[i]) break;
      SLUICE_ASSIGN_OR_RETURN(const Edge edge, ReadInput(i, input));
      if (control_seen && edge.output != kControl) {
        return InvalidArgument("Node '", def_.node(i).name(),
                               "': Control dependencies must come after "
                               "regular dependencies");
      }
      control_seen |= edge.output == kControl;
      edges_.push_back(edge);
    }
    first_edge_.push_back(static_cast<int>(edges_.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> Importer::Order() const {
  ImportEdges edges;
  edges.begin.reserve(def_.node_size() + 1);
  edges.sources.reserve(edges_.size());
  for (int i = 0; i < def_.node_size(); ++i) {
    for (const Edge& edge : EdgesOf(i)) {
      edges.sources.push_back(edge.back ? -1 : edge.node);
    }
    edges.begin.push_back(static_cast<int>(edges.sources.size()));
  }
  std::vector<int> cycle;
  std::vector<int> order = ImportOrder(edges, &cycle);
  if (cycle.empty()) return order;
  std::string path;
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < cycle.size() && i < kShown; ++i) {
    StrAppend(&path, def_.node(cycle[i]).name(), " -> ");
  }
  if (cycle.size() > kShown) path += "... -> ";
  return InvalidArgument(edges.size() - static_cast<int>(order.size()),
                         " nodes in a cycle: ", path,
                         def_.node(cycle[0]).name());
}

absl::Status Importer::AddAll(ImportResults* results) {
  SLUICE_RETURN_IF_ERROR(graph_.functions().Add(def_.library()));
  SLUICE_RETURN_IF_ERROR(SkipMappedNodes());
  SLUICE_RETURN_IF_ERROR(ReadEdges());
  SLUICE_ASSIGN_OR_RETURN(const std::vector<int> order, Order());
  nodes_.resize(def_.node_size());
  for (int index : order) {
    if (skipped_[index]) continue;
    const absl::Status status = AddOne(index);
    if (status.ok()) continue;
    if (ToStd(status.message()).find(NameOf(index)) != std::string_view::npos) {
      return status;
    }
    return WithMessage(status, StrCat(status.message(), "; NodeDef: {{node ",
                                      NameOf(index), "}}"));
  }
  SLUICE_RETURN_IF_ERROR(AddBackEdges());
  SLUICE_RETURN_IF_ERROR(CheckInputMapUsed());
  return FindReturns(results);
}

absl::Status Importer::AddOne(int index) {
  const pb::NodeDef& def = def_.node(index);
  NodeSpec spec;
  spec.name = NameOf(index);
  spec.op = def.op();
  spec.infer_attrs = false;
  spec.device = def.device().empty() ? options_.default_device : def.device();
  SLUICE_RETURN_IF_ERROR(CheckDevice(index, spec.device));
  AttrList shapes;
  SLUICE_RETURN_IF_ERROR(ReadAttrs(index, &spec.attrs, &shapes));
  SLUICE_RETURN_IF_ERROR(RenameColocation(index, &spec.attrs));
  ReadInputs(index, &spec);
  SLUICE_ASSIGN_OR_RETURN(Node* const node, graph_.AddNode(std::move(spec)));
  nodes_[index] = node;
  outputs_ += node->num_outputs();
  if (outputs_ > kMaxOutputs) {
    return InvalidArgument("The nodes up to '", node->name(), "' have ",
                           outputs_, " outputs; at most ", kMaxOutputs,
                           " are possible");
  }
  for (int i = 0; i < node->num_outputs(); ++i) {
    if (i >= static_cast<int>(shapes.shapes.size())) break;
    // A hint from another program; where it contradicts us, we stand.
    node->RefineOutputShape(i, shapes.shapes[i]).IgnoreError();
  }
  return absl::OkStatus();
}

absl::Status Importer::CheckDevice(int index, const std::string& device) {
  if (device.empty() || device == checked_device_) return absl::OkStatus();
  if (!DeviceName::Parse(device).ok()) {
    return InvalidArgument("Malformed device specification '", device,
                           "' in node: ", NodeSummary(def_.node(index)));
  }
  checked_device_ = device;
  return absl::OkStatus();
}

absl::Status Importer::ReadAttrs(int index, AttrMap* attrs,
                                 AttrList* output_shapes) {
  const pb::NodeDef& def = def_.node(index);
  SLUICE_ASSIGN_OR_RETURN(const OpInfo* op, graph_.FindOp(def.op()));
  for (const auto& [name, proto] : def.attr()) {
    auto value = AttrFromProto(proto);
    if (!value.ok()) {
      return Annotate(value.status(),
                      StrCat("Node '", def.name(), "': Attr '", name, "':"));
    }
    if (name == kOutputShapes) {
      if (const AttrList* list = value->get<AttrList>()) *output_shapes = *list;
      continue;
    }
    if (!name.starts_with('_') && op->def.FindAttr(name) == nullptr &&
        IsHarmlessNewerAttr(name, *value)) {
      continue;
    }
    tensor_bytes_ += TensorBytes(*value);
    if (tensor_bytes_ > options_.max_tensor_bytes) {
      return ResourceExhausted("Node '", def.name(),
                               "': the graph's constants take more than ",
                               options_.max_tensor_bytes, " bytes");
    }
    attrs->Set(name, *std::move(value));
  }
  return absl::OkStatus();
}

absl::Status Importer::RenameColocation(int index, AttrMap* attrs) const {
  const AttrList* classes = attrs->Find<AttrList>("_class");
  if (classes == nullptr) return absl::OkStatus();
  std::vector<std::string> renamed = classes->strings;
  for (std::string& text : renamed) {
    if (!text.starts_with(kColocationPrefix)) continue;
    const std::string name = text.substr(kColocationPrefix.size());
    if (auto it = index_.find(name); it != index_.end()) {
      std::string target = NameOf(it->second);
      if (skipped_[it->second]) {
        target = input_map_.at({name, 0}).output.node->name();
      }
      text = StrCat(kColocationPrefix, target);
    } else if (options_.validate_colocation &&
               graph_.FindNode(name) == nullptr) {
      return InvalidArgument("Node '", def_.node(index).name(),
                             "' expects to be colocated with unknown node '",
                             name, "'");
    }
  }
  if (renamed != classes->strings) attrs->Set("_class", std::move(renamed));
  return absl::OkStatus();
}

void Importer::ReadInputs(int index, NodeSpec* spec) const {
  absl::flat_hash_set<const Node*> controls;
  const auto add_control = [&](Node* node) {
    if (controls.insert(node).second) spec->control_inputs.push_back(node);
  };
  bool waits_for_import = false;
  for (const Edge& edge : EdgesOf(index)) {
    waits_for_import |= edge.node >= 0;
    Node* const node = edge.node >= 0 ? nodes_[edge.node] : edge.outside.node;
    if (edge.output == kControl) {
      add_control(node);
    } else if (edge.back) {
      spec->inputs.push_back(Output());
    } else if (edge.node >= 0) {
      spec->inputs.push_back({node, edge.output});
    } else {
      spec->inputs.push_back(edge.outside);
    }
  }
  if (waits_for_import) return;
  for (Node* node : options_.control_dependencies) add_control(node);
}

absl::Status Importer::AddBackEdges() {
  for (int i = 0; i < def_.node_size(); ++i) {
    int input = 0;
    for (const Edge& edge : EdgesOf(i)) {
      if (edge.output == kControl) break;
      if (edge.back) {
        Node* const source = nodes_[edge.node];
        if (edge.output >= source->num_outputs()) {
          return InvalidArgument(
              "Node '", def_.node(i).name(), "': Connecting to invalid output ",
              edge.output, " of source node ", def_.node(edge.node).name(),
              " which has ", source->num_outputs(), " outputs.");
        }
        SLUICE_RETURN_IF_ERROR(
            graph_.SetInput(nodes_[i], input, source->output(edge.output)));
      }
      ++input;
    }
  }
  return absl::OkStatus();
}

absl::Status Importer::CheckInputMapUsed() const {
  std::vector<std::string> missing;
  for (const auto& [name, output] : options_.input_map) {
    const TensorId id = ParseTensorId(name);
    if (input_map_.at({std::string(id.node), id.output}).used) continue;
    auto it = index_.find(ToAbsl(id.node));
    if (it != index_.end() && (skipped_[it->second] ||
                               id.output < nodes_[it->second]->num_outputs())) {
      continue;
    }
    missing.push_back(name);
  }
  if (missing.empty()) return absl::OkStatus();
  return InvalidArgument(
      "Attempted to map inputs that were not found in graph_def: [",
      absl::StrJoin(missing, ", "), "]");
}

absl::Status Importer::FindReturns(ImportResults* results) {
  for (const std::string& name : options_.return_tensors) {
    const TensorId id = ParseTensorId(name);
    if (const Output* mapped = FindMapped(id)) {
      results->return_tensors.push_back(*mapped);
      continue;
    }
    auto it = index_.find(ToAbsl(id.node));
    if (it == index_.end() || nodes_[it->second] == nullptr ||
        id.output == kControl) {
      return InvalidArgument("Requested return tensor '", name,
                             "' not found in graph def");
    }
    Node* const node = nodes_[it->second];
    if (id.output >= node->num_outputs()) {
      return InvalidArgument("Invalid return output ", id.output, " of node '",
                             id.node, "', which has ", node->num_outputs(),
                             " output(s)");
    }
    results->return_tensors.push_back(node->output(id.output));
  }
  for (const std::string& name : options_.return_nodes) {
    auto it = index_.find(name);
    if (it == index_.end() || nodes_[it->second] == nullptr) {
      return InvalidArgument("Requested return node '", name,
                             "' not found in graph def");
    }
    results->return_nodes.push_back(nodes_[it->second]);
  }
  return absl::OkStatus();
}

// A graph is as old as its oldest part and as demanding as its newest.
void Importer::MergeVersions(bool first) {
  const pb::VersionDef& theirs = def_.versions();
  GraphVersions& ours = graph_.versions();
  const int producer = def_.has_versions() ? theirs.producer() : def_.version();
  ours.producer = first ? producer : std::min(ours.producer, producer);
  ours.min_consumer = std::max(ours.min_consumer, theirs.min_consumer());
  for (int bad : theirs.bad_consumers()) {
    if (std::ranges::count(ours.bad_consumers, bad) == 0) {
      ours.bad_consumers.push_back(bad);
    }
  }
}

}  // namespace

absl::Status ImportGraphDef(const pb::GraphDef& def,
                            const ImportOptions& options, Graph* graph,
                            ImportResults* results) {
  ImportResults ignored;
  if (results == nullptr) results = &ignored;
  *results = ImportResults();
  return Importer(def, options, graph).Run(results);
}

}  // namespace sluice
