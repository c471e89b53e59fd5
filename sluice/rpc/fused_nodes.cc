#include "sluice/rpc/fused_nodes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<pb::NodeDef>;

// Writes what stands for the fused nodes of a graph.
class Expander {
 public:
  explicit Expander(Nodes* out) : out_(*out) {}

  // False if the node is not one of those: then nothing was written.
  bool Expand(const pb::NodeDef& node) {
    if (node.op() == "_FusedMatMul") return FusedMatMul(node);
    if (node.op() == "_UnaryOpsComposition") return UnaryOps(node);
    if (node.op() == "_HostCast") return HostCast(node);
    if (node.op() == "_SwitchN") return SwitchN(node);
    return false;
  }

  // Names of outputs that other nodes have now.
  const absl::flat_hash_map<std::string, std::string>& renamed() const {
    return renamed_;
  }
  // An error when a small message asked for too much.
  const absl::Status& status() const { return status_; }

 private:
  // A node on the device of `fused`. The last one of several takes its name.
  pb::NodeDef* Add(const pb::NodeDef& fused, const std::string& op, bool last) {
    pb::NodeDef* node = out_.Add();
    node->set_name(last ? fused.name()
                        : StrCat(fused.name(), "/_fused_", count_++));
    node->set_op(op);
    node->set_device(fused.device());
    return node;
  }
  static void CopyAttr(const pb::NodeDef& from, const char* name,
                       pb::NodeDef* to) {
    const auto it = from.attr().find(name);
    if (it != from.attr().end()) (*to->mutable_attr())[name] = it->second;
  }
  static void SetType(pb::DataType type, const char* name, pb::NodeDef* node) {
    (*node->mutable_attr())[name].set_type(type);
  }
  static std::vector<std::string> Strings(const pb::NodeDef& node,
                                          const char* name) {
    const auto it = node.attr().find(name);
    if (it == node.attr().end()) return {};
    return {it->second.list().s().begin(), it->second.list().s().end()};
  }
  // Its inputs; the nodes that it only waits for go to `waits`.
  static std::vector<std::string> Inputs(const pb::NodeDef& node,
                                         std::vector<std::string>* waits) {
    std::vector<std::string> inputs;
    for (const std::string& input : node.input()) {
      (input.starts_with('^') ? *waits : inputs).push_back(input);
    }
    return inputs;
  }
  static void Connect(const std::vector<std::string>& inputs,
                      pb::NodeDef* node) {
    for (const std::string& input : inputs) node->add_input(input);
  }
  // Counts a node of a row, each of which repeats the name, the device and
  // attributes of `fused`. False if the rows are too long: status() says so.
  bool Count(const pb::NodeDef& node, const pb::NodeDef& fused) {
    ++nodes_;
    bytes_ += static_cast<int64_t>(node.ByteSizeLong());
    if (nodes_ <= kMostNodes && bytes_ <= kMostBytes) return true;
    status_ = InvalidArgument("The fused ops of a graph stand for more than ",
                              kMostNodes, " nodes or ", kMostBytes,
                              " bytes, with ", fused.op(), " ", fused.name());
    return false;
  }

  static bool IsActivation(const std::string& op) {
    return op == "Relu" || op == "Relu6" || op == "Elu" || op == "LeakyRelu" ||
           op == "Tanh" || op == "Sigmoid";
  }

  bool FusedMatMul(const pb::NodeDef& fused) {
    std::vector<std::string> waits;
    const std::vector<std::string> inputs = Inputs(fused, &waits);
    const std::vector<std::string> ops = Strings(fused, "fused_ops");
    if (inputs.size() != 3 || ops.empty() || ops.size() > 2 ||
        ops[0] != "BiasAdd" || (ops.size() == 2 && !IsActivation(ops[1]))) {
      return false;
    }
    pb::NodeDef* product = Add(fused, "MatMul", false);
    Connect({inputs[0], inputs[1]}, product);
    Connect(waits, product);
    CopyAttr(fused, "transpose_a", product);
    CopyAttr(fused, "transpose_b", product);
    CopyAttr(fused, "T", product);
    pb::NodeDef* sum = Add(fused, "BiasAdd", ops.size() == 1);
    Connect({product->name(), inputs[2]}, sum);
    CopyAttr(fused, "T", sum);
    if (ops.size() == 1) return true;
    pb::NodeDef* result = Add(fused, ops[1], true);
    result->add_input(sum->name());
    CopyAttr(fused, "T", result);
    const auto alpha = fused.attr().find("leakyrelu_alpha");
    if (ops[1] == "LeakyRelu" && alpha != fused.attr().end()) {
      (*result->mutable_attr())["alpha"] = alpha->second;
    }
    return true;
  }

  bool UnaryOps(const pb::NodeDef& fused) {
    const std::vector<std::string> ops = Strings(fused, "op_names");
    if (ops.empty()) return false;
    std::vector<std::string> inputs(fused.input().begin(), fused.input().end());
    for (size_t i = 0; i < ops.size(); ++i) {
      pb::NodeDef* node = Add(fused, ops[i], i + 1 == ops.size());
      Connect(inputs, node);
      CopyAttr(fused, "T", node);
      inputs = {node->name()};
      if (!Count(*node, fused)) return true;
    }
    return true;
  }

  bool HostCast(const pb::NodeDef& fused) {
    *out_.Add() = fused;
    out_.rbegin()->set_op("Cast");
    return true;
  }

  // Each Switch asks whether the index is its own and passes on to the next
  // what is not; the last output gets what is left.
  bool SwitchN(const pb::NodeDef& fused) {
    std::vector<std::string> waits;
    const std::vector<std::string> inputs = Inputs(fused, &waits);
    const auto outputs = fused.attr().find("num_outs");
    if (inputs.size() != 2 || outputs == fused.attr().end()) return false;
    const int64_t count = outputs->second.i();
    if (count < 2 || count > kMostOutputs) return false;
    std::string data = inputs[0];
    for (int64_t i = 0; i + 1 < count; ++i) {
      pb::NodeDef* own = Add(fused, "Const", false);
      SetType(pb::DT_INT32, "dtype", own);
      pb::TensorProto* value = (*own->mutable_attr())["value"].mutable_tensor();
      value->set_dtype(pb::DT_INT32);
      value->mutable_tensor_shape();
      value->add_int_val(static_cast<int>(i));
      // So that it belongs to the loop that the index belongs to.
      own->add_input(Waiting(inputs[1]));
      pb::NodeDef* mine = Add(fused, "Equal", false);
      Connect({inputs[1], own->name()}, mine);
      SetType(pb::DT_INT32, "T", mine);
      pb::NodeDef* either = Add(fused, "Switch", false);
      Connect({data, mine->name()}, either);
      Connect(waits, either);
      CopyAttr(fused, "T", either);
      if (!Count(*own, fused) || !Count(*mine, fused) ||
          !Count(*either, fused)) {
        return true;
      }
      renamed_[OutputName(fused.name(), i)] = StrCat(either->name(), ":1");
      data = either->name();
    }
    renamed_[OutputName(fused.name(), count - 1)] = data;
    // Who waits for the node waits for this.
    Connect({Waiting(inputs[0]), Waiting(inputs[1])}, Add(fused, "NoOp", true));
    return true;
  }
  static std::string Waiting(const std::string& input) {
    return StrCat("^", input.substr(0, input.find(':')));
  }
  static std::string OutputName(const std::string& node, int64_t index) {
    return index == 0 ? node : StrCat(node, ":", index);
  }

  // What a small message may ask for: outputs of one node, and what all rows of
  // a graph are together. Its own limits are asked when it is apart.
  static constexpr int64_t kMostOutputs = 1000;
  static constexpr int64_t kMostNodes = 100'000;
  static constexpr int64_t kMostBytes = 64 << 20;

  Nodes& out_;
  int64_t count_ = 0;
  int64_t nodes_ = 0;
  int64_t bytes_ = 0;
  absl::Status status_;
  absl::flat_hash_map<std::string, std::string> renamed_;
};

bool MayBeFused(const pb::NodeDef& node) {
  return node.op() == "_FusedMatMul" || node.op() == "_UnaryOpsComposition" ||
         node.op() == "_HostCast" || node.op() == "_SwitchN";
}

}  // namespace

absl::Status TakeApart(pb::GraphDef* graph) {
  if (std::ranges::none_of(graph->node(), MayBeFused)) return absl::OkStatus();
  Nodes nodes;
  nodes.Swap(graph->mutable_node());
  Expander expander(graph->mutable_node());
  for (pb::NodeDef& node : nodes) {
    if (!expander.Expand(node)) graph->add_node()->Swap(&node);
    SLUICE_RETURN_IF_ERROR(expander.status());
  }
  if (expander.renamed().empty()) return absl::OkStatus();
  for (pb::NodeDef& node : *graph->mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      std::string name = input;
      if (name.ends_with(":0")) name.resize(name.size() - 2);
      const auto it = expander.renamed().find(name);
      if (it != expander.renamed().end()) input = it->second;
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
