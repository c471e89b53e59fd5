// Any bytes are an Example, a SequenceExample, or an error. What protobuf
// itself accepts must be read the same way.
#include <cstdlib>
#include <map>
#include <string>

#include "sluice/io/example_wire.h"
#include "sluice/proto/example.pb.h"

namespace sluice {
namespace {

bool Same(const FeatureValues& values, const pb::Feature& feature) {
  switch (feature.kind_case()) {
    case pb::Feature::kBytesList:
      return values.dtype == DType::kString &&
             std::equal(values.strings.begin(), values.strings.end(),
                        feature.bytes_list().value().begin(),
                        feature.bytes_list().value().end());
    case pb::Feature::kFloatList:
      // By size only: a NaN is not itself.
      return values.dtype == DType::kFloat &&
             values.size() == feature.float_list().value_size();
    case pb::Feature::kInt64List:
      return values.dtype == DType::kInt64 &&
             std::equal(values.ints.begin(), values.ints.end(),
                        feature.int64_list().value().begin(),
                        feature.int64_list().value().end());
    default:
      return values.dtype == DType::kInvalid;
  }
}

void CheckExample(std::string_view bytes) {
  std::map<std::string, std::string> last;
  FeatureValues values;
  const bool good =
      VisitExample(bytes, [&](std::string_view key, std::string_view feature) {
        last[std::string(key)] = std::string(feature);
        return DecodeFeature(feature, &values);
      });
  pb::Example message;
  // Protobuf also refuses keys that are not UTF-8, and takes groups.
  if (!good || !message.ParseFromArray(bytes.data(), bytes.size())) return;
  const auto& expected = message.features().feature();
  if (expected.size() != last.size()) std::abort();
  for (const auto& [key, bytes_of] : last) {
    const auto it = expected.find(key);
    if (it == expected.end()) std::abort();
    DecodeFeature(bytes_of, &values);
    if (!Same(values, it->second)) std::abort();
  }
}

void CheckSequence(std::string_view bytes) {
  FeatureValues values;
  const auto decode = [&](std::string_view feature) {
    return DecodeFeature(feature, &values);
  };
  VisitSequenceExample(
      bytes,
      [&](std::string_view, std::string_view feature) {
        return decode(feature);
      },
      [&](std::string_view, std::string_view list) {
        return VisitFeatureList(list, decode);
      });
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  sluice::CheckExample(bytes);
  sluice::CheckSequence(bytes);
  return 0;
}
