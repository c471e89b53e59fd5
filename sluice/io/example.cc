#include "sluice/io/example.h"

#include "sluice/base/coding.h"

namespace sluice {
namespace {

// A field that is bytes: a string, a message or packed numbers.
void AppendBytesField(int number, std::string_view bytes, std::string* out) {
  AppendVarint(static_cast<uint64_t>(number) << 3 | 2, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

std::string BytesField(int number, std::string_view bytes) {
  std::string field;
  AppendBytesField(number, bytes, &field);
  return field;
}

}  // namespace

ExampleBuilder& ExampleBuilder::Strings(
    std::string_view key, const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) AppendBytesField(1, value, &list);
  features_[std::string(key)] = BytesField(1, list);
  return *this;
}

ExampleBuilder& ExampleBuilder::Floats(std::string_view key,
                                       const std::vector<float>& values) {
  const std::string_view packed(reinterpret_cast<const char*>(values.data()),
                                values.size() * sizeof(float));
  features_[std::string(key)] =
      BytesField(2, values.empty() ? "" : BytesField(1, packed));
  return *this;
}

ExampleBuilder& ExampleBuilder::Ints(std::string_view key,
                                     const std::vector<int64_t>& values) {
  std::string packed;
  for (int64_t value : values) {
    AppendVarint(static_cast<uint64_t>(value), &packed);
  }
  features_[std::string(key)] =
      BytesField(3, values.empty() ? "" : BytesField(1, packed));
  return *this;
}

std::string ExampleBuilder::Serialize() const {
  std::string features;
  for (const auto& [key, feature] : features_) {
    AppendBytesField(1, BytesField(1, key) + BytesField(2, feature), &features);
  }
  return BytesField(1, features);
}

}  // namespace sluice
