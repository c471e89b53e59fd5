// Device: where kernels run. The CPU goes the same way a GPU will: a name, an
// incarnation that tells a restart, resources, and threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sluice/base/file.h"
#include "sluice/base/thread_pool.h"
#include "sluice/graph/device_name.h"
#include "sluice/kernel/resource.h"

namespace sluice {

// What others know of a device.
struct DeviceInfo {
  DeviceName name;   // Full.
  std::string text;  // The same as text.
  uint64_t incarnation = 0;
  int64_t memory_limit = 0;
};

// Immutable but for what its resource manager holds.
class Device {
 public:
  // `files` is what its kernels read and write; borrowed.
  Device(DeviceName name, uint64_t incarnation,
         FileSystem& files = RealFileSystem());

  const std::string& name() const { return text_; }
  const DeviceName& parsed_name() const { return name_; }
  const std::string& type() const { return *name_.type; }
  uint64_t incarnation() const { return incarnation_; }
  int64_t memory_limit() const { return memory_limit_; }
  DeviceInfo info() const {
    return {name_, text_, incarnation_, memory_limit_};
  }
  ResourceManager& resources() const { return *resources_; }
  FileSystem& files() const { return *files_; }

  // A device with the same identity and resources of its own, for sessions that
  // must not share state.
  std::unique_ptr<Device> WithOwnResources() const;
  // The same device, resources included, under the name of another task.
  std::unique_ptr<Device> Renamed(const DeviceName& task) const;

 private:
  DeviceName name_;
  std::string text_;
  uint64_t incarnation_;
  int64_t memory_limit_;
  FileSystem* files_;
  std::shared_ptr<ResourceManager> resources_;
};

}  // namespace sluice
