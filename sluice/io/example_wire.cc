#include "sluice/io/example_wire.h"

#include "sluice/base/coding.h"

namespace sluice {
namespace {

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kFixed32 = 5
};

// One field of a message.
struct Field {
  uint32_t number = 0;
  uint32_t type = 0;
  uint64_t varint = 0;     // Of kVarint.
  std::string_view bytes;  // Of the other types.

  bool Is(uint32_t n, WireType t) const { return number == n && type == t; }
};

bool TakeBytes(std::string_view* from, uint64_t n, std::string_view* bytes) {
  if (n > from->size()) return false;
  *bytes = from->substr(0, n);
  from->remove_prefix(n);
  return true;
}

// False if there is no field there. Groups, which nobody writes, are refused.
bool TakeField(std::string_view* message, Field* field) {
  uint64_t tag;
  if (!TakeVarint64(message, &tag) || tag >> 32 != 0) return false;
  field->number = static_cast<uint32_t>(tag >> 3);
  field->type = tag & 7;
  if (field->number == 0) return false;
  uint64_t size;
  switch (field->type) {
    case kVarint:
      return TakeVarint64(message, &field->varint);
    case kFixed64:
      return TakeBytes(message, 8, &field->bytes);
    case kFixed32:
      return TakeBytes(message, 4, &field->bytes);
    case kBytes:
      return TakeVarint64(message, &size) &&
             TakeBytes(message, size, &field->bytes);
    default:
      return false;
  }
}

// Calls `visit` with each entry of a map<string, message> that is field 1.
bool VisitMap(std::string_view map, EntryVisitor visit) {
  Field field;
  while (!map.empty()) {
    if (!TakeField(&map, &field)) return false;
    if (!field.Is(1, kBytes)) continue;
    std::string_view entry = field.bytes;
    std::string_view key, value;
    while (!entry.empty()) {
      if (!TakeField(&entry, &field)) return false;
      if (field.Is(1, kBytes)) key = field.bytes;
      if (field.Is(2, kBytes)) value = field.bytes;
    }
    if (!visit(key, value)) return false;
  }
  return true;
}

bool DecodeStrings(std::string_view list, std::vector<std::string_view>* out) {
  Field field;
  while (!list.empty()) {
    if (!TakeField(&list, &field)) return false;
    if (field.Is(1, kBytes)) out->push_back(field.bytes);
  }
  return true;
}

bool DecodeFloats(std::string_view list, std::vector<float>* out) {
  Field field;
  while (!list.empty()) {
    if (!TakeField(&list, &field)) return false;
    if (field.number != 1 || field.type == kVarint || field.type == kFixed64) {
      continue;
    }
    // Packed or single.
    if (field.bytes.size() % sizeof(float) != 0) return false;
    if (field.bytes.empty()) continue;
    const size_t before = out->size();
    out->resize(before + field.bytes.size() / sizeof(float));
    std::memcpy(out->data() + before, field.bytes.data(), field.bytes.size());
  }
  return true;
}

bool DecodeInts(std::string_view list, std::vector<int64_t>* out) {
  Field field;
  while (!list.empty()) {
    if (!TakeField(&list, &field)) return false;
    if (field.Is(1, kVarint)) {
      out->push_back(static_cast<int64_t>(field.varint));
    } else if (field.Is(1, kBytes)) {
      while (!field.bytes.empty()) {
        uint64_t value;
        if (!TakeVarint64(&field.bytes, &value)) return false;
        out->push_back(static_cast<int64_t>(value));
      }
    }
  }
  return true;
}

}  // namespace

int64_t FeatureValues::size() const {
  switch (dtype) {
    case DType::kString:
      return static_cast<int64_t>(strings.size());
    case DType::kFloat:
      return static_cast<int64_t>(floats.size());
    case DType::kInt64:
      return static_cast<int64_t>(ints.size());
    default:
      return 0;
  }
}

void FeatureValues::Clear() {
  dtype = DType::kInvalid;
  strings.clear();
  floats.clear();
  ints.clear();
}

bool VisitExample(std::string_view example, EntryVisitor visit) {
  Field field;
  while (!example.empty()) {
    if (!TakeField(&example, &field)) return false;
    if (field.Is(1, kBytes) && !VisitMap(field.bytes, visit)) return false;
  }
  return true;
}

bool VisitSequenceExample(std::string_view example, EntryVisitor context,
                          EntryVisitor lists) {
  Field field;
  while (!example.empty()) {
    if (!TakeField(&example, &field)) return false;
    if (field.Is(1, kBytes) && !VisitMap(field.bytes, context)) return false;
    if (field.Is(2, kBytes) && !VisitMap(field.bytes, lists)) return false;
  }
  return true;
}

bool VisitFeatureList(std::string_view list,
                      absl::FunctionRef<bool(std::string_view)> visit) {
  Field field;
  while (!list.empty()) {
    if (!TakeField(&list, &field)) return false;
    if (field.Is(1, kBytes) && !visit(field.bytes)) return false;
  }
  return true;
}

bool DecodeFeature(std::string_view feature, FeatureValues* values) {
  values->Clear();
  Field field;
  while (!feature.empty()) {
    if (!TakeField(&feature, &field)) return false;
    if (field.type != kBytes || field.number > 3) continue;
    // The kinds exclude each other: the last one counts.
    constexpr DType kKinds[] = {DType::kString, DType::kFloat, DType::kInt64};
    const DType dtype = kKinds[field.number - 1];
    if (dtype != values->dtype) values->Clear();
    values->dtype = dtype;
    const bool good =
        dtype == DType::kString  ? DecodeStrings(field.bytes, &values->strings)
        : dtype == DType::kFloat ? DecodeFloats(field.bytes, &values->floats)
                                 : DecodeInts(field.bytes, &values->ints);
    if (!good) return false;
  }
  return true;
}

}  // namespace sluice
