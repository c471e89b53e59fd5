#include "sluice/kernel/device.h"

#include "sluice/base/memory_limit.h"

namespace sluice {

Device::Device(DeviceName name, uint64_t incarnation, FileSystem& files)
    : name_(std::move(name)),
      text_(name_.ToString()),
      incarnation_(incarnation),
      memory_limit_(MemoryLimit()),
      files_(&files),
      resources_(std::make_shared<ResourceManager>(name_.job.value_or(""))) {}

std::unique_ptr<Device> Device::WithOwnResources() const {
  return std::make_unique<Device>(name_, incarnation_, *files_);
}

std::unique_ptr<Device> Device::Renamed(const DeviceName& task) const {
  DeviceName name = name_;
  name.job = task.job;
  name.replica = task.replica;
  name.task = task.task;
  auto device = std::make_unique<Device>(name, incarnation_, *files_);
  device->resources_ = resources_;
  return device;
}

}  // namespace sluice
