// The wire's configuration and metadata messages in C++ terms, both ways.
#pragma once

#include "sluice/kernel/device.h"
#include "sluice/master/options.h"

namespace sluice {

namespace pb {
class ConfigProto;
class DeviceAttributes;
class RunMetadata;
class RunOptions;
class StepStats;
}  // namespace pb

SessionOptions SessionOptionsFromConfig(const pb::ConfigProto& config);
// Options that a distributed session cannot have are an error.
absl::Status CheckRemoteConfig(const pb::ConfigProto& config);

RunOptions RunOptionsFromProto(const pb::RunOptions& proto);
void RunOptionsToProto(const RunOptions& options, pb::RunOptions* proto);

void RunMetadataToProto(const RunMetadata& metadata, pb::RunMetadata* proto);
void StepStatsToProto(const std::vector<StepStatsCollector::DeviceStats>& stats,
                      pb::StepStats* proto);
void StepStatsFromProto(const pb::StepStats& proto,
                        StepStatsCollector* collector);

void DeviceToProto(const DeviceInfo& device, pb::DeviceAttributes* proto);
absl::StatusOr<DeviceInfo> DeviceFromProto(const pb::DeviceAttributes& proto);

}  // namespace sluice
