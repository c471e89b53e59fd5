#include "sluice/rpc/config.h"

#include "sluice/base/status.h"
#include "sluice/base/thread_pool.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/cluster.pb.h"
#include "sluice/proto/config.pb.h"
#include "sluice/proto/device.pb.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/proto/step_stats.pb.h"
#include "sluice/tensor/codec.h"

namespace sluice {

std::map<std::string, std::string> TasksFromProto(
    const pb::ClusterDef& cluster) {
  std::map<std::string, std::string> tasks;
  for (const pb::JobDef& job : cluster.job()) {
    for (const auto& [index, address] : job.tasks()) {
      tasks[StrCat("/job:", job.name(), "/replica:0/task:", index)] = address;
    }
  }
  return tasks;
}

void TasksToProto(const std::map<std::string, std::string>& tasks,
                  pb::ClusterDef* cluster) {
  for (const auto& [task, address] : tasks) {
    const absl::StatusOr<DeviceName> name = DeviceName::Parse(task);
    if (!name.ok()) continue;  // They come from TasksFromProto.
    const std::string job = name->job.value_or("");
    if (cluster->job_size() == 0 ||
        cluster->job(cluster->job_size() - 1).name() != job) {
      cluster->add_job()->set_name(job);
    }
    pb::JobDef* last = cluster->mutable_job(cluster->job_size() - 1);
    (*last->mutable_tasks())[name->task.value_or(0)] = address;
  }
}

namespace {

// What is set and changes nothing here, for one line in the log. Options that
// change nothing in TensorFlow either are not among them.
std::vector<std::string> WithoutEffect(const pb::ConfigProto& config) {
  const pb::GraphOptions& graph = config.graph_options();
  const pb::RPCOptions& rpc = config.rpc_options();
  std::vector<std::string> names;
  const auto add = [&](bool set, const char* name) {
    if (set) names.emplace_back(name);
  };
  add(graph.infer_shapes(), "graph_options.infer_shapes");
  add(graph.enable_recv_scheduling(), "graph_options.enable_recv_scheduling");
  add(graph.optimizer_options().max_folded_constant_in_bytes() != 0,
      "graph_options.optimizer_options.max_folded_constant_in_bytes");
  add(!rpc.compression_algorithm().empty(),
      "rpc_options.compression_algorithm");
  add(rpc.cache_rpc_response(), "rpc_options.cache_rpc_response");
  add(rpc.disable_session_connection_sharing(),
      "rpc_options.disable_session_connection_sharing");
  return names;
}

}  // namespace

SessionOptions SessionOptionsFromConfig(const pb::ConfigProto& config,
                                        std::string_view target) {
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
  options.bfloat16_transfers =
      config.graph_options().enable_bfloat16_sendrecv();
  options.static_graph = config.experimental().optimize_for_static_graph();
  options.no_partition_graphs =
      config.experimental().disable_output_partition_graphs();
  if (config.rpc_options().sluice_task_deadline_in_ms() > 0) {
    options.task_deadline = std::chrono::milliseconds(
        config.rpc_options().sluice_task_deadline_in_ms());
  }
  options.place_pruned_graph = config.graph_options().place_pruned_graph();
  options.text = config.ShortDebugString();
  options.use_rpc = config.rpc_options().use_rpc_for_inprocess_master();
  options.compute_threads =
      ComputeThreads(config.intra_op_parallelism_threads(),
                     config.inter_op_parallelism_threads());
  options.num_thread_pools =
      std::max(1, config.session_inter_op_thread_pool_size());
  options.prefer_own_task = config.sluice_prefer_own_task();
  options.eager_placement = config.sluice_eager_placement();
  options.build_cost_model = config.graph_options().build_cost_model();
  options.build_cost_model_after =
      config.graph_options().build_cost_model_after();
  options.without_effect = WithoutEffect(config);
  auto cpus = config.device_count().find("CPU");
  if (cpus != config.device_count().end()) options.num_cpus = cpus->second;
  if (config.cluster_def().job_size() > 0) {
    SessionCluster& cluster = options.cluster.emplace();
    cluster.tasks = TasksFromProto(config.cluster_def());
    cluster.text = config.cluster_def().ShortDebugString();
    cluster.target = target;
    cluster.share_state =
        config.experimental().share_session_state_in_clusterspec_propagation();
  }
  return options;
}

void TaskDeadlineToConfig(const SessionOptions& options,
                          pb::ConfigProto* config) {
  if (options.task_deadline == kTaskDeadline) return;
  config->mutable_rpc_options()->set_sluice_task_deadline_in_ms(
      options.task_deadline.count());
}

void SessionOptionsToConfig(const SessionOptions& options,
                            pb::ConfigProto* config) {
  config->set_allow_soft_placement(options.allow_soft_placement);
  config->set_log_device_placement(options.log_device_placement);
  for (const std::string& filter : options.device_filters) {
    config->add_device_filters(filter);
  }
  config->set_isolate_session_state(options.isolate_session_state);
  config->set_operation_timeout_in_ms(options.operation_timeout_ms);
  if (!options.fold_constants || !options.merge_common) {
    pb::OptimizerOptions* optimizer =
        config->mutable_graph_options()->mutable_optimizer_options();
    optimizer->set_opt_level(pb::OptimizerOptions::L0);
    optimizer->set_do_constant_folding(options.fold_constants);
    optimizer->set_do_common_subexpression_elimination(options.merge_common);
  }
  config->mutable_graph_options()->set_build_cost_model(
      options.build_cost_model);
  config->mutable_graph_options()->set_build_cost_model_after(
      options.build_cost_model_after);
  config->mutable_graph_options()->set_enable_bfloat16_sendrecv(
      options.bfloat16_transfers);
  config->mutable_experimental()->set_optimize_for_static_graph(
      options.static_graph);
  config->mutable_experimental()->set_disable_output_partition_graphs(
      options.no_partition_graphs);
  config->set_sluice_prefer_own_task(options.prefer_own_task);
  config->set_sluice_eager_placement(options.eager_placement);
  TaskDeadlineToConfig(options, config);
  if (options.cluster) {
    TasksToProto(options.cluster->tasks, config->mutable_cluster_def());
    config->mutable_experimental()
        ->set_share_session_state_in_clusterspec_propagation(
            options.cluster->share_state);
  }
}

absl::Status CheckRemoteConfig(const pb::ConfigProto& config) {
  if (config.use_per_session_threads() ||
      config.session_inter_op_thread_pool_size() > 0) {
    return InvalidArgument(
        "Distributed session does not support session thread pool options.");
  }
  return absl::OkStatus();
}

TlsOptions TlsFromConfig(const pb::ConfigProto& config) {
  const pb::TlsFiles& files = config.rpc_options().sluice_tls();
  return {files.certificate(), files.key(), files.ca(),
          config.rpc_options().has_sluice_tls()};
}

void RemoveTls(pb::ConfigProto* config) {
  if (!config->rpc_options().has_sluice_tls()) return;
  config->mutable_rpc_options()->clear_sluice_tls();
}

RunOptions RunOptionsFromProto(const pb::RunOptions& proto) {
  RunOptions options;
  options.timeout_ms = proto.timeout_in_ms();
  options.trace = proto.trace_level() == pb::RunOptions::FULL_TRACE;
  options.trace_local = proto.trace_level() >= pb::RunOptions::SOFTWARE_TRACE;
  options.partition_graphs = proto.output_partition_graphs();
  options.thread_pool = proto.inter_op_thread_pool();
  options.debug = proto.debug_options().debug_tensor_watch_opts_size() > 0;
  return options;
}

void RunOptionsToProto(const RunOptions& options, pb::RunOptions* proto) {
  proto->set_timeout_in_ms(options.timeout_ms);
  if (options.trace) {
    proto->set_trace_level(pb::RunOptions::FULL_TRACE);
  } else if (options.trace_local) {
    proto->set_trace_level(pb::RunOptions::SOFTWARE_TRACE);
  }
  proto->set_output_partition_graphs(options.partition_graphs);
  proto->set_inter_op_thread_pool(options.thread_pool);
  // Which tensors does not matter to who refuses it.
  if (options.debug) {
    proto->mutable_debug_options()->add_debug_tensor_watch_opts();
  }
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
    pb::AllocationDescription* memory =
        tensor->mutable_allocation_description();
    memory->set_requested_bytes(output.bytes);
    memory->set_allocated_bytes(output.bytes);
    memory->set_allocator_name("cpu");
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
      // Adding one more says that some are left out.
      if (collector->full()) {
        collector->Add(device.device(), {});
        return;
      }
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

namespace {

void CostGraphToProto(std::span<const CostNode> nodes,
                      pb::CostGraphDef* proto) {
  for (const CostNode& node : nodes) {
    pb::CostGraphDef::Node* out = proto->add_node();
    out->set_name(node.name);
    out->set_device(node.device);
    out->set_id(node.id);
    for (const auto& [from, port] : node.inputs) {
      auto* input = out->add_input_info();
      input->set_preceding_node(from);
      input->set_preceding_port(port);
    }
    for (const NodeStats::OutputStats& made : node.outputs) {
      // What was not made is there without a size.
      while (out->output_info_size() <= made.slot) {
        auto* output = out->add_output_info();
        output->set_size(-1);
        output->set_alias_input_port(-1);
      }
      auto* output = out->mutable_output_info(made.slot);
      output->set_size(made.bytes);
      output->set_dtype(DTypeToProto(made.dtype));
      ShapeToProto(made.shape, output->mutable_shape());
    }
    out->set_is_final(node.is_final);
    for (int control : node.controls) out->add_control_input(control);
    out->set_compute_cost(node.micros);
  }
}

}  // namespace

std::vector<CostNode> CostGraphFromProto(const pb::CostGraphDef& proto) {
  std::vector<CostNode> nodes;
  for (const pb::CostGraphDef::Node& node : proto.node()) {
    CostNode& out = nodes.emplace_back();
    out.id = node.id();
    out.name = node.name();
    out.device = node.device();
    out.is_final = node.is_final();
    out.micros = node.compute_cost();
    for (const auto& input : node.input_info()) {
      out.inputs.emplace_back(input.preceding_node(), input.preceding_port());
    }
    out.controls.assign(node.control_input().begin(),
                        node.control_input().end());
    for (int i = 0; i < node.output_info_size(); ++i) {
      const auto& output = node.output_info(i);
      const absl::StatusOr<Shape> shape = ShapeFromProto(output.shape());
      if (!shape.ok() || output.size() < 0) continue;  // It was not made.
      out.outputs.push_back(
          {i, DTypeFromProto(output.dtype()), *shape, output.size()});
    }
  }
  return nodes;
}

void RunMetadataToProto(const RunMetadata& metadata, pb::RunMetadata* proto) {
  if (!metadata.cost_graph.empty()) {
    CostGraphToProto(metadata.cost_graph, proto->mutable_cost_graph());
  }
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
