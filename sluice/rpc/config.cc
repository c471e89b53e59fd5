#include "sluice/rpc/config.h"

#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/config.pb.h"
#include "sluice/proto/device.pb.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/proto/step_stats.pb.h"
#include "sluice/tensor/codec.h"

namespace sluice {

SessionOptions SessionOptionsFromConfig(const pb::ConfigProto& config) {
  SessionOptions options;
  options.allow_soft_placement = config.allow_soft_placement();
  options.log_device_placement = config.log_device_placement();
  options.device_filters.assign(config.device_filters().begin(),
                                config.device_filters().end());
  options.isolate_session_state = config.isolate_session_state();
  options.operation_timeout_ms = config.operation_timeout_in_ms();
  const pb::OptimizerOptions& optimizer =
      config.graph_options().optimizer_options();
  const bool level1 = optimizer.opt_level() >= pb::OptimizerOptions::L1;
  options.fold_constants = level1 || optimizer.do_constant_folding();
  options.merge_common =
      level1 || optimizer.do_common_subexpression_elimination();
  auto cpus = config.device_count().find("CPU");
  if (cpus != config.device_count().end()) options.num_cpus = cpus->second;
  return options;
}

absl::Status CheckRemoteConfig(const pb::ConfigProto& config) {
  if (config.use_per_session_threads() ||
      config.session_inter_op_thread_pool_size() > 0) {
    return InvalidArgument(
        "Distributed session does not support session thread pool options.");
  }
  return absl::OkStatus();
}

RunOptions RunOptionsFromProto(const pb::RunOptions& proto) {
  RunOptions options;
  options.timeout_ms = proto.timeout_in_ms();
  options.trace = proto.trace_level() != pb::RunOptions::NO_TRACE;
  options.partition_graphs = proto.output_partition_graphs();
  return options;
}

void RunOptionsToProto(const RunOptions& options, pb::RunOptions* proto) {
  proto->set_timeout_in_ms(options.timeout_ms);
  if (options.trace) proto->set_trace_level(pb::RunOptions::FULL_TRACE);
  proto->set_output_partition_graphs(options.partition_graphs);
}

namespace {

void NodeStatsToProto(const NodeStats& node, pb::NodeExecStats* out) {
  out->set_node_name(node.node);
  out->set_timeline_label(node.label);
  out->set_all_start_micros(node.start_nanos / 1000);
  out->set_all_start_nanos(node.start_nanos);
  const int64_t length = node.end_nanos - node.start_nanos;
  // A node that took no measurable time still has to show in a trace.
  out->set_op_end_rel_micros(std::max<int64_t>(1, length / 1000));
  out->set_op_end_rel_nanos(length);
  out->set_all_end_rel_micros(std::max<int64_t>(1, length / 1000));
  out->set_all_end_rel_nanos(length);
  out->set_scheduled_micros(node.scheduled_nanos / 1000);
  out->set_scheduled_nanos(node.scheduled_nanos);
  out->set_thread_id(node.thread_id);
  for (const NodeStats::OutputStats& output : node.outputs) {
    pb::NodeOutput* o = out->add_output();
    o->set_slot(output.slot);
    pb::TensorDescription* tensor = o->mutable_tensor_description();
    tensor->set_dtype(DTypeToProto(output.dtype));
    ShapeToProto(output.shape, tensor->mutable_shape());
    tensor->mutable_allocation_description()->set_requested_bytes(output.bytes);
    tensor->mutable_allocation_description()->set_allocator_name("cpu");
  }
}

}  // namespace

void StepStatsToProto(const std::vector<StepStatsCollector::DeviceStats>& stats,
                      pb::StepStats* proto) {
  for (const auto& device : stats) {
    pb::DeviceStepStats* out = proto->add_dev_stats();
    out->set_device(device.device);
    for (const NodeStats& node : device.nodes) {
      NodeStatsToProto(node, out->add_node_stats());
    }
  }
}

void StepStatsFromProto(const pb::StepStats& proto,
                        StepStatsCollector* collector) {
  for (const pb::DeviceStepStats& device : proto.dev_stats()) {
    for (const pb::NodeExecStats& node : device.node_stats()) {
      NodeStats stats;
      stats.node = node.node_name();
      stats.label = node.timeline_label();
      stats.start_nanos = node.all_start_nanos() != 0
                              ? node.all_start_nanos()
                              : node.all_start_micros() * 1000;
      stats.end_nanos = stats.start_nanos + node.all_end_rel_micros() * 1000;
      stats.scheduled_nanos = node.scheduled_micros() * 1000;
      stats.thread_id = node.thread_id();
      for (const pb::NodeOutput& output : node.output()) {
        const pb::TensorDescription& tensor = output.tensor_description();
        absl::StatusOr<Shape> shape = ShapeFromProto(tensor.shape());
        if (!shape.ok()) continue;
        stats.outputs.push_back(
            {output.slot(), DTypeFromProto(tensor.dtype()), *shape,
             tensor.allocation_description().requested_bytes()});
      }
      collector->Add(device.device(), std::move(stats));
    }
  }
}

void RunMetadataToProto(const RunMetadata& metadata, pb::RunMetadata* proto) {
  StepStatsToProto(metadata.step_stats, proto->mutable_step_stats());
  for (const auto& graph : metadata.partition_graphs) {
    ExportOptions options;
    options.assigned_devices = true;
    ExportGraphDef(*graph, options, proto->add_partition_graphs());
  }
}

void DeviceToProto(const DeviceInfo& device, pb::DeviceAttributes* proto) {
  proto->set_name(device.text);
  proto->set_device_type(device.name.type.value_or(""));
  proto->set_memory_limit(device.memory_limit);
  proto->set_incarnation(device.incarnation);
  proto->mutable_locality();
}

absl::StatusOr<DeviceInfo> DeviceFromProto(const pb::DeviceAttributes& proto) {
  DeviceInfo device;
  SLUICE_ASSIGN_OR_RETURN(device.name, DeviceName::Parse(proto.name()));
  if (!device.name.full()) {
    return InvalidArgument("'", proto.name(), "' is not a full device name");
  }
  device.text = device.name.ToString();
  device.incarnation = proto.incarnation();
  device.memory_limit = proto.memory_limit();
  return device;
}

}  // namespace sluice
