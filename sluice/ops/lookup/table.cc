#include "sluice/ops/lookup/table.h"

#include <cstring>
#include <utility>

#include "sluice/base/status.h"
#include "sluice/ops/state/elements.h"

namespace sluice {
namespace {

bool Plain(DType dtype) {
  return dtype == DType::kString || ElementSize(dtype) > 0;
}

}  // namespace

absl::StatusOr<RefPtr<LookupTable>> LookupTable::Create(TableConfig config) {
  const DType key = config.key_dtype;
  if ((key != DType::kString && key != DType::kInt64 && key != DType::kInt32) ||
      !Plain(config.value_dtype)) {
    return InvalidArgument("There are no tables from ", DTypeName(key), " to ",
                           DTypeName(config.value_dtype),
                           ": keys are string, "
                           "int64 or int32, values of any plain type");
  }
  return MakeRef<LookupTable>(std::move(config));
}

LookupTable::LookupTable(TableConfig config)
    : config_(std::move(config)),
      initialized_(config_.kind != TableConfig::Kind::kStatic),
      entries_(config_) {}

int64_t LookupTable::size() const {
  MutexLock lock(mu_);
  return entries_.size;
}

bool LookupTable::by_string() const {
  return config_.key_dtype == DType::kString || config_.key_shape.rank() > 0;
}

std::string LookupTable::StringKey(const Tensor& keys, int64_t i) const {
  const int64_t elements = config_.key_shape.size();
  if (config_.key_dtype != DType::kString) {
    const size_t bytes = elements * ElementSize(config_.key_dtype);
    return std::string(static_cast<const char*>(keys.raw()) + i * bytes, bytes);
  }
  const auto strings = keys.data<std::string>();
  if (config_.key_shape.rank() == 0) return strings[i];
  std::string key;
  for (int64_t k = i * elements; k < (i + 1) * elements; ++k) {
    // With lengths, so that no two rows look alike.
    key += StrCat(strings[k].size(), ":", strings[k]);
  }
  return key;
}

int64_t LookupTable::NumberKey(const Tensor& keys, int64_t i) const {
  return IndexInput(keys)[i];
}

std::string LookupTable::KeyText(const Tensor& keys, int64_t i) const {
  return RowText(keys, i, config_.key_shape.size());
}

int64_t LookupTable::RowOf(const Entries& entries, const Tensor& keys,
                           int64_t i) const {
  if (by_string()) {
    const bool plain =
        config_.key_dtype == DType::kString && config_.key_shape.rank() == 0;
    const auto it = plain ? entries.by_string.find(keys.data<std::string>()[i])
                          : entries.by_string.find(StringKey(keys, i));
    return it == entries.by_string.end() ? -1 : it->second;
  }
  const auto it = entries.by_number.find(NumberKey(keys, i));
  return it == entries.by_number.end() ? -1 : it->second;
}

void LookupTable::Add(Entries* entries, const Tensor& keys,
                      const Tensor& values, int64_t i) const {
  if (by_string()) {
    entries->strings.push_back(StringKey(keys, i));
    entries->by_string.emplace(entries->strings.back(), entries->size);
  } else {
    entries->numbers.push_back(NumberKey(keys, i));
    entries->by_number.emplace(entries->numbers.back(), entries->size);
  }
  entries->values.Append(values, i);
  ++entries->size;
}

void LookupTable::Erase(Entries* entries, int64_t row) const {
  const auto erase = [row](auto* map, auto* keys) {
    map->erase((*keys)[row]);
    if (row + 1 != static_cast<int64_t>(keys->size())) {
      (*keys)[row] = std::move(keys->back());
      (*map)[(*keys)[row]] = row;
    }
    keys->pop_back();
  };
  if (by_string()) {
    erase(&entries->by_string, &entries->strings);
  } else {
    erase(&entries->by_number, &entries->numbers);
  }
  entries->values.Remove(row);
  --entries->size;
}

absl::StatusOr<int64_t> LookupTable::CountKeys(const Tensor& keys) const {
  if (keys.dtype() != config_.key_dtype) {
    return InvalidArgument("Key must be type ", DTypeName(config_.key_dtype),
                           " but got ", DTypeName(keys.dtype()));
  }
  const Shape& shape = config_.key_shape;
  const int extra = keys.rank() - shape.rank();
  bool ends = extra >= 0;
  for (int d = 0; ends && d < shape.rank(); ++d) {
    ends = keys.dim(extra + d) == shape.dim(d);
  }
  if (!ends) {
    return InvalidArgument("Input key shape ", keys.shape().DebugString(),
                           " must end with ", shape.DebugString());
  }
  const int64_t count = shape.size() == 0 ? 0 : keys.size() / shape.size();
  if (config_.kind != TableConfig::Kind::kDense) return count;
  for (int64_t i = 0; i < count; ++i) {
    const std::string key = StringKey(keys, i);
    if (key == StringKey(config_.empty_key, 0)) {
      return InvalidArgument(
          "Using the empty_key as a table key is not "
          "allowed");
    }
    if (config_.deleted_key.initialized() &&
        key == StringKey(config_.deleted_key, 0)) {
      return InvalidArgument(
          "Using the deleted_key as a table key is not "
          "allowed");
    }
  }
  return count;
}

namespace {

// Of the values of `keys`.
Shape ValuesShape(const TableConfig& config, const Tensor& keys) {
  Shape shape;
  for (int d = 0; d < keys.rank() - config.key_shape.rank(); ++d) {
    shape.AddDim(keys.dim(d));
  }
  for (int64_t dim : config.value_shape.dims()) shape.AddDim(dim);
  return shape;
}

}  // namespace

absl::Status LookupTable::CheckValues(const Tensor& keys,
                                      const Tensor& values) const {
  if (values.dtype() != config_.value_dtype) {
    return InvalidArgument("Value must be type ",
                           DTypeName(config_.value_dtype), " but got ",
                           DTypeName(values.dtype()));
  }
  const Shape expected = ValuesShape(config_, keys);
  if (values.shape() == expected) return absl::OkStatus();
  return InvalidArgument("Expected shape ", expected.DebugString(),
                         " for value, got ", values.shape().DebugString());
}

absl::StatusOr<Tensor> LookupTable::Find(const Tensor& keys,
                                         const Tensor& missing) const {
  SLUICE_ASSIGN_OR_RETURN(const int64_t count, CountKeys(keys));
  if (missing.dtype() != config_.value_dtype) {
    return InvalidArgument("Default value must be type ",
                           DTypeName(config_.value_dtype), " but got ",
                           DTypeName(missing.dtype()));
  }
  if (missing.shape() != config_.value_shape) {
    return InvalidArgument("Expected shape ", config_.value_shape.DebugString(),
                           " for default value, got ",
                           missing.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(const Shape shape,
                          Shape::Create(ValuesShape(config_, keys).dims()));
  SLUICE_ASSIGN_OR_RETURN(Tensor values,
                          Tensor::Create(config_.value_dtype, shape));
  const int64_t elements = config_.value_shape.size();
  MutexLock lock(mu_);
  if (!initialized_) return FailedPrecondition("Table not initialized.");
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = RowOf(entries_, keys, i);
    if (row >= 0) {
      entries_.values.CopyTo(row, &values, i);
    } else {
      CopyElements(missing, 0, &values, i * elements, elements);
    }
  }
  return values;
}

absl::Status LookupTable::Insert(const Tensor& keys, const Tensor& values) {
  if (config_.kind == TableConfig::Kind::kStatic) {
    return Unimplemented(
        "Insert not supported by InitializableLookupTable implementations");
  }
  SLUICE_ASSIGN_OR_RETURN(const int64_t count, CountKeys(keys));
  SLUICE_RETURN_IF_ERROR(CheckValues(keys, values));
  MutexLock lock(mu_);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = RowOf(entries_, keys, i);
    if (row < 0) {
      Add(&entries_, keys, values, i);
    } else {
      entries_.values.Set(row, values, i);
    }
  }
  return absl::OkStatus();
}

absl::Status LookupTable::Remove(const Tensor& keys) {
  if (config_.kind == TableConfig::Kind::kStatic) {
    return Unimplemented(
        "Remove not supported by InitializableLookupTable implementations");
  }
  SLUICE_ASSIGN_OR_RETURN(const int64_t count, CountKeys(keys));
  MutexLock lock(mu_);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = RowOf(entries_, keys, i);
    if (row >= 0) Erase(&entries_, row);
  }
  return absl::OkStatus();
}

absl::Status LookupTable::Import(const Tensor& keys, const Tensor& values) {
  if (config_.kind == TableConfig::Kind::kStatic) {
    return Initialize(keys, values);
  }
  SLUICE_ASSIGN_OR_RETURN(const int64_t count, CountKeys(keys));
  SLUICE_RETURN_IF_ERROR(CheckValues(keys, values));
  Entries fresh(config_);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = RowOf(fresh, keys, i);
    if (row < 0) {
      Add(&fresh, keys, values, i);
    } else {
      fresh.values.Set(row, values, i);
    }
  }
  MutexLock lock(mu_);
  std::swap(entries_, fresh);
  return absl::OkStatus();
}

absl::Status LookupTable::Initialize(const Tensor& keys, const Tensor& values) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t count, CountKeys(keys));
  SLUICE_RETURN_IF_ERROR(CheckValues(keys, values));
  Entries fresh(config_);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = RowOf(fresh, keys, i);
    if (row < 0) {
      Add(&fresh, keys, values, i);
    } else if (!fresh.values.Equal(row, values, i)) {
      return FailedPrecondition(
          "HashTable has different value for same key. Key ", KeyText(keys, i),
          " has ", fresh.values.Text(row), " and trying to add value ",
          RowText(values, i, config_.value_shape.size()));
    }
  }
  MutexLock lock(mu_);
  if (initialized_) {
    if (entries_.size == count) return absl::OkStatus();
    return FailedPrecondition(
        "Table was already initialized with different data.");
  }
  std::swap(entries_, fresh);
  initialized_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::pair<Tensor, Tensor>> LookupTable::Export() const {
  MutexLock lock(mu_);
  if (!initialized_) return FailedPrecondition("Table not initialized.");
  Shape key_shape = config_.key_shape;
  key_shape.InsertDim(0, entries_.size);
  Shape value_shape = config_.value_shape;
  value_shape.InsertDim(0, entries_.size);
  if (config_.key_shape.rank() > 0 && config_.key_dtype == DType::kString) {
    return Unimplemented("Export of a table with vectors of strings as keys");
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor keys,
                          Tensor::Create(config_.key_dtype, key_shape));
  SLUICE_ASSIGN_OR_RETURN(Tensor values,
                          Tensor::Create(config_.value_dtype, value_shape));
  for (int64_t i = 0; i < entries_.size; ++i) {
    if (config_.key_dtype == DType::kString) {
      keys.mutable_data<std::string>()[i] = entries_.strings[i];
    } else if (by_string()) {
      const std::string& key = entries_.strings[i];
      std::memcpy(static_cast<char*>(keys.mutable_raw()) + i * key.size(),
                  key.data(), key.size());
    } else if (config_.key_dtype == DType::kInt64) {
      keys.mutable_data<int64_t>()[i] = entries_.numbers[i];
    } else {
      keys.mutable_data<int32_t>()[i] =
          static_cast<int32_t>(entries_.numbers[i]);
    }
    entries_.values.CopyTo(i, &values, i);
  }
  return std::pair(std::move(keys), std::move(values));
}

std::string LookupTable::DebugString() const {
  MutexLock lock(mu_);
  return StrCat("table from ", DTypeName(config_.key_dtype), " to ",
                DTypeName(config_.value_dtype), " with ", entries_.size,
                " entries", initialized_ ? "" : ", not initialized");
}

}  // namespace sluice
