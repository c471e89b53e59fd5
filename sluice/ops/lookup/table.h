// LookupTable: values by key. A static table is filled once, by an initializer;
// a mutable one at any time. Keys are strings or integers, values rows of
// elements of any plain type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/mutex.h"
#include "sluice/kernel/resource.h"
#include "sluice/ops/lookup/table_rows.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

inline constexpr char kTableType[] = "N10tensorflow6lookup15LookupInterfaceE";

struct TableConfig {
  enum class Kind { kStatic, kMutable, kDense };

  std::string name;
  Kind kind = Kind::kStatic;
  DType key_dtype = DType::kInvalid;
  DType value_dtype = DType::kInvalid;
  Shape key_shape;    // Only dense tables have keys that are no scalars.
  Shape value_shape;  // Of one value.
  // Of a dense table: keys that must not be used.
  Tensor empty_key;
  Tensor deleted_key;
};

// Thread-safe.
class LookupTable : public Resource {
 public:
  // An error for types that no table holds.
  static absl::StatusOr<RefPtr<LookupTable>> Create(TableConfig config);
  explicit LookupTable(TableConfig config);

  const TableConfig& config() const { return config_; }
  int64_t size() const;

  // The values of `keys`, and `missing` (one value) for those that are not
  // there.
  absl::StatusOr<Tensor> Find(const Tensor& keys, const Tensor& missing) const;
  // Adds or replaces. Not for static tables.
  absl::Status Insert(const Tensor& keys, const Tensor& values);
  absl::Status Remove(const Tensor& keys);
  // All keys and values, in no particular order.
  absl::StatusOr<std::pair<Tensor, Tensor>> Export() const;
  // Holds exactly these afterwards. A static table can be filled so once; doing
  // it again is fine if the number of entries is the same.
  absl::Status Import(const Tensor& keys, const Tensor& values);

  std::string DebugString() const override;

 private:
  // Where the rows of keys are.
  struct Entries {
    explicit Entries(const TableConfig& config)
        : values(config.value_dtype, config.value_shape.size()) {}
    absl::flat_hash_map<std::string, int64_t> by_string;
    absl::flat_hash_map<int64_t, int64_t> by_number;
    // Of each row.
    std::vector<std::string> strings;
    std::vector<int64_t> numbers;
    TableRows values;
    int64_t size = 0;
  };

  // Keys that are no integers, and those that are no scalars, as bytes.
  bool by_string() const;
  std::string StringKey(const Tensor& keys, int64_t i) const;
  int64_t NumberKey(const Tensor& keys, int64_t i) const;
  std::string KeyText(const Tensor& keys, int64_t i) const;
  // The row of key i, or -1.
  int64_t RowOf(const Entries& entries, const Tensor& keys, int64_t i) const;
  void Add(Entries* entries, const Tensor& keys, const Tensor& values,
           int64_t i) const;
  void Erase(Entries* entries, int64_t row) const;

  // How many keys there are.
  absl::StatusOr<int64_t> CountKeys(const Tensor& keys) const;
  absl::Status CheckValues(const Tensor& keys, const Tensor& values) const;
  absl::Status Initialize(const Tensor& keys, const Tensor& values);

  const TableConfig config_;

  mutable Mutex mu_;
  bool initialized_ SLUICE_GUARDED_BY(mu_);
  Entries entries_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
