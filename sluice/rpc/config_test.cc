#include "sluice/rpc/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/proto/cluster.pb.h"
#include "sluice/proto/config.pb.h"

namespace sluice {
namespace {

SessionOptions ThereAndBack(const SessionOptions& options) {
  pb::ConfigProto config;
  SessionOptionsToConfig(options, &config);
  return SessionOptionsFromConfig(config, "grpc://host:1");
}

TEST(SessionConfig, CarriesOptionsToAnotherProcess) {
  SessionOptions options;
  options.allow_soft_placement = true;
  options.log_device_placement = true;
  options.device_filters = {"/job:ps", "/job:worker/task:0"};
  options.isolate_session_state = true;
  options.operation_timeout_ms = 77;
  options.bfloat16_transfers = true;
  options.static_graph = true;
  options.no_partition_graphs = true;
  options.prefer_own_task = true;
  options.eager_placement = true;
  options.cluster.emplace();
  options.cluster->tasks = {{"/job:a/replica:0/task:0", "host:1"},
                            {"/job:a/replica:0/task:10", "host:3"},
                            {"/job:a/replica:0/task:2", "host:2"},
                            {"/job:b/replica:0/task:0", "host:4"}};
  options.cluster->share_state = true;
  const SessionOptions got = ThereAndBack(options);
  EXPECT_TRUE(got.allow_soft_placement);
  EXPECT_TRUE(got.log_device_placement);
  EXPECT_EQ(got.device_filters, options.device_filters);
  EXPECT_TRUE(got.isolate_session_state);
  EXPECT_EQ(got.operation_timeout_ms, 77);
  EXPECT_TRUE(got.bfloat16_transfers);
  EXPECT_TRUE(got.static_graph);
  EXPECT_TRUE(got.no_partition_graphs);
  EXPECT_TRUE(got.prefer_own_task);
  EXPECT_TRUE(got.eager_placement);
  ASSERT_TRUE(got.cluster.has_value());
  EXPECT_EQ(got.cluster->tasks, options.cluster->tasks);
  EXPECT_EQ(got.cluster->target, "grpc://host:1");
  EXPECT_TRUE(got.cluster->share_state);
}

TEST(SessionConfig, CarriesWhichSimplificationsAreWanted) {
  for (const bool fold : {false, true}) {
    for (const bool merge : {false, true}) {
      SessionOptions options;
      options.fold_constants = fold;
      options.merge_common = merge;
      const SessionOptions got = ThereAndBack(options);
      EXPECT_EQ(got.fold_constants, fold);
      EXPECT_EQ(got.merge_common, merge);
    }
  }
}

TEST(SessionConfig, KnowsWhatHasNoEffect) {
  pb::ConfigProto config;
  config.set_placement_period(3);
  config.mutable_graph_options()->set_timeline_step(2);
  EXPECT_THAT(SessionOptionsFromConfig(config).without_effect,
              testing::IsEmpty());
  config.mutable_graph_options()->set_infer_shapes(true);
  config.mutable_rpc_options()->set_compression_algorithm("gzip");
  EXPECT_THAT(SessionOptionsFromConfig(config).without_effect,
              testing::ElementsAre("graph_options.infer_shapes",
                                   "rpc_options.compression_algorithm"));
}

TEST(SessionConfig, WithEmptyNamesOfCertificatesDoesNotMeanPlainText) {
  pb::ConfigProto config;
  EXPECT_TRUE(TlsFromConfig(config).empty());
  config.mutable_rpc_options()->mutable_sluice_tls()->set_ca("");
  EXPECT_FALSE(TlsFromConfig(config).empty());
}

TEST(RunOptions, GoToAnotherProcessAndTellTraceLevelsApart) {
  pb::RunOptions proto;
  EXPECT_FALSE(RunOptionsFromProto(proto).trace_local);
  proto.set_trace_level(pb::RunOptions::HARDWARE_TRACE);
  proto.set_inter_op_thread_pool(7);
  proto.mutable_debug_options()->add_debug_tensor_watch_opts();
  RunOptions options = RunOptionsFromProto(proto);
  pb::RunOptions sent;
  RunOptionsToProto(options, &sent);
  options = RunOptionsFromProto(sent);
  EXPECT_FALSE(options.trace);
  EXPECT_TRUE(options.trace_local);
  EXPECT_EQ(options.thread_pool, 7);
  EXPECT_TRUE(options.debug);
  proto.set_trace_level(pb::RunOptions::FULL_TRACE);
  EXPECT_TRUE(RunOptionsFromProto(proto).trace);
}

TEST(SessionConfig, WithoutAClusterLeavesTheServersOwn) {
  EXPECT_FALSE(ThereAndBack(SessionOptions()).cluster.has_value());
}

}  // namespace
}  // namespace sluice
