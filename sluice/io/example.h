// ExampleBuilder: writes training examples, which record files usually hold and
// the ops ParseExample and ParseSingleExample read.
//
//   auto file = RecordWriter::Open(RealFileSystem(), "train.tfrecord");
//   (*file)->Write(ExampleBuilder()
//                      .Ints("label", {7})
//                      .Floats("x", {0.5f, 1.5f})
//                      .Strings("name", {"seven"})
//                      .Serialize());
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// Thread-compatible. A feature that is given again is replaced.
class ExampleBuilder {
 public:
  ExampleBuilder& Ints(std::string_view key,
                       const std::vector<int64_t>& values);
  ExampleBuilder& Floats(std::string_view key,
                         const std::vector<float>& values);
  ExampleBuilder& Strings(std::string_view key,
                          const std::vector<std::string>& values);
  // The bytes of an Example message (proto/example.proto).
  std::string Serialize() const;

 private:
  std::map<std::string, std::string, std::less<>> features_;  // Serialized.
};

}  // namespace sluice
