// The sums inside accumulators: of whole tensors, and of rows.

#include <algorithm>
#include <numeric>

#include "sluice/base/status.h"
#include "sluice/numeric/add_n.h"
#include "sluice/numeric/binary.h"
#include "sluice/numeric/narrow.h"
#include "sluice/ops/queue/accumulator.h"

namespace sluice {
namespace {
namespace accumulator_sums {

template <typename T>
void DivideBy(T* sum, int64_t count, int64_t n) {
  const T divisor = static_cast<T>(count);
  numeric::BinaryMap<numeric::BinaryOp::kDiv, T>(sum, sum, 1, &divisor, 0, n);
}

// Makes sure that nobody else reads what will be written.
absl::Status MakeOwn(Tensor* tensor) {
  if (tensor->unique()) return absl::OkStatus();
  Tensor copy = tensor->Clone();
  if (!copy.initialized()) {
    return Tensor::Create(tensor->dtype(), tensor->shape()).status();
  }
  *tensor = std::move(copy);
  return absl::OkStatus();
}

absl::Status ShapeMismatch(const PartialShape& expected, const Shape& got) {
  return InvalidArgument("Shape mismatch: expected ", expected.DebugString(),
                         ", got ", got.DebugString());
}

template <typename T>
class Dense : public Accumulator {
 public:
  using Accumulator::Accumulator;

 protected:
  absl::Status Add(const Tuple& gradient, bool first) override {
    const Tensor& grad = gradient[0];
    if (!config().shape.CompatibleWith(grad.shape())) {
      return ShapeMismatch(config().shape, grad.shape());
    }
    if (first) {
      sum_ = grad.Owned();
      return absl::OkStatus();
    }
    if (grad.shape() != sum_.shape()) {
      return ShapeMismatch(sum_.shape(), grad.shape());
    }
    SLUICE_RETURN_IF_ERROR(MakeOwn(&sum_));
    numeric::AddTo(sum_.mutable_data<T>().data(), grad.data<T>().data(),
                   grad.size());
    return absl::OkStatus();
  }

  absl::StatusOr<Tuple> Reduce(int64_t count) override {
    Tensor result = std::move(sum_);
    if (config().mean && count > 1) {
      SLUICE_RETURN_IF_ERROR(MakeOwn(&result));
      DivideBy(result.mutable_data<T>().data(), count, result.size());
    }
    return Tuple{std::move(result)};
  }

 private:
  Tensor sum_;
};

// Rows by index, in ascending order.
template <typename T>
class Sparse : public Accumulator {
 public:
  using Accumulator::Accumulator;

 protected:
  absl::Status Add(const Tuple& gradient, bool first) override {
    const Tensor& indices = gradient[0];
    const Tensor& values = gradient[1];
    SLUICE_RETURN_IF_ERROR(Check(indices, values, gradient[2]));
    Shape row = values.shape();
    row.RemoveDim(0);
    if (first) {
      rows_ = Rows();
      row_shape_ = row;
    } else if (row != row_shape_) {
      return ShapeMismatch(row_shape_, row);
    }
    Rows added = Sorted(indices.data<int64_t>(), values.data<T>(), row.size());
    rows_ = first ? std::move(added) : Merged(rows_, added, row.size());
    return absl::OkStatus();
  }

  absl::StatusOr<Tuple> Reduce(int64_t) override {
    const Rows rows = std::exchange(rows_, Rows());
    const int64_t count = static_cast<int64_t>(rows.indices.size());
    Shape shape = row_shape_;
    shape.InsertDim(0, count);
    SLUICE_ASSIGN_OR_RETURN(Tensor values,
                            Tensor::Create(DTypeOf<T>::value, shape));
    std::ranges::copy(rows.values, values.mutable_data<T>().begin());
    const int64_t row = row_shape_.size();
    for (int64_t i = 0; i < count && config().mean; ++i) {
      DivideBy(values.mutable_data<T>().data() + i * row, rows.counts[i], row);
    }
    return Tuple{
        Tensor::Of<int64_t>({count}, std::span<const int64_t>(rows.indices)),
        std::move(values), FullShape()};
  }

 private:
  struct Rows {
    std::vector<int64_t> indices;
    std::vector<int64_t> counts;  // Gradients that had the row.
    std::vector<T> values;

    void Append(int64_t index, int64_t count, const T* row, int64_t n) {
      indices.push_back(index);
      counts.push_back(count);
      values.insert(values.end(), row, row + n);
    }
  };

  // Sums rows that occur several times in one gradient.
  static Rows Sorted(std::span<const int64_t> indices,
                     std::span<const T> values, int64_t row) {
    std::vector<int64_t> order(indices.size());
    std::iota(order.begin(), order.end(), 0);
    if (!std::ranges::is_sorted(indices)) {
      std::ranges::stable_sort(
          order, [&](int64_t a, int64_t b) { return indices[a] < indices[b]; });
    }
    Rows rows;
    for (int64_t i : order) {
      const T* from = values.data() + i * row;
      if (!rows.indices.empty() && rows.indices.back() == indices[i]) {
        numeric::AddTo(rows.values.data() + rows.values.size() - row, from,
                       row);
      } else {
        rows.Append(indices[i], 1, from, row);
      }
    }
    return rows;
  }

  static Rows Merged(const Rows& a, const Rows& b, int64_t row) {
    Rows merged;
    size_t i = 0;
    size_t j = 0;
    while (i < a.indices.size() || j < b.indices.size()) {
      const bool from_a =
          j == b.indices.size() ||
          (i < a.indices.size() && a.indices[i] <= b.indices[j]);
      const bool both =
          from_a && j < b.indices.size() && a.indices[i] == b.indices[j];
      if (from_a) {
        merged.Append(a.indices[i], a.counts[i] + (both ? b.counts[j] : 0),
                      a.values.data() + i * row, row);
      } else {
        merged.Append(b.indices[j], b.counts[j], b.values.data() + j * row,
                      row);
      }
      if (both) {
        numeric::AddTo(merged.values.data() + merged.values.size() - row,
                       b.values.data() + j * row, row);
      }
      i += from_a;
      j += both || !from_a;
    }
    return merged;
  }

  absl::Status Check(const Tensor& indices, const Tensor& values,
                     const Tensor& shape) const {
    if (indices.rank() != 1) {
      return InvalidArgument(
          "Input indices should be vector but received "
          "shape: ",
          indices.shape().DebugString());
    }
    if (values.rank() < 1) {
      return InvalidArgument("Values cannot be 0-dimensional.");
    }
    if (values.dim(0) != indices.dim(0)) {
      return InvalidArgument("Expected ", indices.dim(0),
                             " non-empty input values, got ", values.dim(0));
    }
    SLUICE_RETURN_IF_ERROR(CheckDims(values.shape(), 1));
    if (shape.size() > 0) {
      SLUICE_ASSIGN_OR_RETURN(const Shape full,
                              Shape::Create(shape.data<int64_t>()));
      if (full.rank() != values.rank()) {
        return ShapeMismatch(full, values.shape());
      }
      SLUICE_RETURN_IF_ERROR(CheckDims(full, 0));
    }
    const int64_t limit = KnownShape() ? config().shape.dim(0) : -1;
    for (int64_t i = 0; i < indices.size(); ++i) {
      const int64_t index = indices.data<int64_t>()[i];
      if (index < 0 || (limit >= 0 && index >= limit)) {
        return InvalidArgument("Shape mismatch: index of slice ", i,
                               " exceeded limits of shape; index is ", index,
                               " exceeded ", limit);
      }
    }
    return absl::OkStatus();
  }

  // Optimizers pass an empty shape to say that they do not know it.
  bool KnownShape() const {
    return config().shape.known_rank() && config().shape.rank() > 0;
  }

  absl::Status CheckDims(const Shape& shape, int from) const {
    if (!KnownShape()) return absl::OkStatus();
    const PartialShape& expected = config().shape;
    bool fits = expected.rank() == shape.rank();
    for (int d = from; fits && d < shape.rank(); ++d) {
      fits = expected.dim(d) < 0 || expected.dim(d) == shape.dim(d);
    }
    return fits ? absl::OkStatus() : ShapeMismatch(expected, shape);
  }

  // The rows' sizes; the number of rows only if the accumulator knows it.
  Tensor FullShape() const {
    std::vector<int64_t> dims = {KnownShape() ? config().shape.dim(0) : -1};
    dims.insert(dims.end(), row_shape_.dims().begin(), row_shape_.dims().end());
    return Tensor::Of<int64_t>({static_cast<int64_t>(dims.size())},
                               std::span<const int64_t>(dims));
  }

  Rows rows_;
  Shape row_shape_;
};

// Sums narrow numbers as floats: many small gradients would be lost in a sum of
// halves. `kValues` is where they are in a gradient.
template <typename T, typename Wide, int kValues>
class Narrow : public Wide {
 public:
  using Wide::Wide;

 protected:
  absl::Status Add(const Tuple& gradient, bool first) override {
    Tuple wide = gradient;
    const Tensor& values = gradient[kValues];
    SLUICE_ASSIGN_OR_RETURN(wide[kValues],
                            Tensor::Create(DType::kFloat, values.shape()));
    numeric::Widen(values.data<T>().data(), 1, values.size(),
                   wide[kValues].mutable_data<float>().data());
    return Wide::Add(wide, first);
  }

  absl::StatusOr<Tuple> Reduce(int64_t count) override {
    SLUICE_ASSIGN_OR_RETURN(Tuple wide, Wide::Reduce(count));
    const Tensor values = wide[kValues];
    SLUICE_ASSIGN_OR_RETURN(wide[kValues],
                            Tensor::Create(DTypeOf<T>::value, values.shape()));
    numeric::Round(values.data<float>().data(), values.size(),
                   wide[kValues].mutable_data<T>().data());
    return wide;
  }
};

template <template <typename> class A, int kValues>
RefPtr<Accumulator> MakeFor(AccumulatorConfig config) {
  switch (config.dtype) {
    case DType::kFloat:
      return MakeRef<A<float>>(std::move(config));
    case DType::kDouble:
      return MakeRef<A<double>>(std::move(config));
    case DType::kInt32:
      return MakeRef<A<int32_t>>(std::move(config));
    case DType::kHalf:
      return MakeRef<Narrow<Half, A<float>, kValues>>(std::move(config));
    case DType::kBfloat16:
      return MakeRef<Narrow<BFloat16, A<float>, kValues>>(std::move(config));
    default:
      return MakeRef<A<int64_t>>(std::move(config));
  }
}

}  // namespace accumulator_sums
}  // namespace

RefPtr<Accumulator> MakeDenseAccumulator(AccumulatorConfig config) {
  return accumulator_sums::MakeFor<accumulator_sums::Dense, 0>(
      std::move(config));
}

RefPtr<Accumulator> MakeSparseAccumulator(AccumulatorConfig config) {
  return accumulator_sums::MakeFor<accumulator_sums::Sparse, 1>(
      std::move(config));
}

}  // namespace sluice
