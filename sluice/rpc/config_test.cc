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

TEST(SessionConfig, WithoutAClusterLeavesTheServersOwn) {
  EXPECT_FALSE(ThereAndBack(SessionOptions()).cluster.has_value());
}

}  // namespace
}  // namespace sluice
