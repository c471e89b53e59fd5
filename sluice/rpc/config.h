// The wire's configuration and metadata messages in C++ terms, both ways.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sluice/kernel/device.h"
#include "sluice/master/options.h"
#include "sluice/rpc/tls.h"

namespace sluice {

namespace pb {
class ClusterDef;
class ConfigProto;
class CostGraphDef;
class DeviceAttributes;
class RunMetadata;
class RunOptions;
class StepStats;
}  // namespace pb

// `target` is where the client finds the master.
SessionOptions SessionOptionsFromConfig(const pb::ConfigProto& config,
                                        std::string_view target = "");
// What a master elsewhere can be asked for.
void SessionOptionsToConfig(const SessionOptions& options,
                            pb::ConfigProto* config);

// The part of it that may come from the client's environment. The default is
// left to the master.
void TaskDeadlineToConfig(const SessionOptions& options,
                          pb::ConfigProto* config);

// Tasks by name ("/job:ps/replica:0/task:0").
std::map<std::string, std::string> TasksFromProto(
    const pb::ClusterDef& cluster);
void TasksToProto(const std::map<std::string, std::string>& tasks,
                  pb::ClusterDef* cluster);

// Options that a distributed session cannot have are an error.
absl::Status CheckRemoteConfig(const pb::ConfigProto& config);

// The private field that names certificates; files of this machine only, so
// what is sent to others goes without it.
TlsOptions TlsFromConfig(const pb::ConfigProto& config);
void RemoveTls(pb::ConfigProto* config);

RunOptions RunOptionsFromProto(const pb::RunOptions& proto);
void RunOptionsToProto(const RunOptions& options, pb::RunOptions* proto);

void RunMetadataToProto(const RunMetadata& metadata, pb::RunMetadata* proto);
void StepStatsToProto(const std::vector<StepStatsCollector::DeviceStats>& stats,
                      pb::StepStats* proto);
void StepStatsFromProto(const pb::StepStats& proto,
                        StepStatsCollector* collector);

std::vector<CostNode> CostGraphFromProto(const pb::CostGraphDef& proto);

void DeviceToProto(const DeviceInfo& device, pb::DeviceAttributes* proto);
absl::StatusOr<DeviceInfo> DeviceFromProto(const pb::DeviceAttributes& proto);

}  // namespace sluice
