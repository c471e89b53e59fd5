// DecodeCSV: lines of comma-separated values as one tensor for each column.

#include <algorithm>
#include <vector>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/parsing/element_text.h"
#include "sluice/ops/state/elements.h"

namespace sluice {
namespace {
namespace decode_csv {

// Splits one record into its fields.
class Splitter {
 public:
  Splitter(std::string_view record, char delimiter, bool quotes)
      : record_(record), delimiter_(delimiter), quotes_(quotes) {}

  absl::StatusOr<std::vector<std::string>> Split() {
    std::vector<std::string> fields;
    while (at_ < record_.size()) {
      if (record_[at_] == '\n' || record_[at_] == '\r') {
        ++at_;
        continue;
      }
      std::string field;
      SLUICE_RETURN_IF_ERROR(quotes_ && record_[at_] == '"' ? Quoted(&field)
                                                            : Plain(&field));
      fields.push_back(std::move(field));
    }
    // A delimiter at the end has an empty field behind it.
    if (!record_.empty() && record_.back() == delimiter_) {
      fields.emplace_back();
    }
    return fields;
  }

 private:
  absl::Status Plain(std::string* field) {
    for (; at_ < record_.size() && record_[at_] != delimiter_; ++at_) {
      const char c = record_[at_];
      if ((quotes_ && c == '"') || c == '\n' || c == '\r') {
        return InvalidArgument(
            "Unquoted fields cannot have quotes/CRLFs inside");
      }
      field->push_back(c);
    }
    ++at_;  // The delimiter.
    return absl::OkStatus();
  }

  absl::Status Quoted(std::string* field) {
    ++at_;
    while (at_ < record_.size()) {
      if (record_[at_] != '"') {
        field->push_back(record_[at_++]);
        continue;
      }
      const size_t next = at_ + 1;
      if (next == record_.size() || record_[next] == delimiter_) {
        at_ = next + 1;
        return absl::OkStatus();
      }
      if (record_[next] != '"') {
        return InvalidArgument(
            "Quote inside a string has to be escaped by another quote");
      }
      field->push_back('"');
      at_ += 2;
    }
    return InvalidArgument(
        "Quoted field has to end with quote followed by delim or end");
  }

  const std::string_view record_;
  const char delimiter_;
  const bool quotes_;
  size_t at_ = 0;
};

class DecodeCsvKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    auto kernel = std::make_unique<DecodeCsvKernel>();
    const std::string delimiter = node.attr<std::string>("field_delim");
    if (delimiter.size() != 1) {
      return InvalidArgument("field_delim should be only 1 char");
    }
    kernel->delimiter_ = delimiter[0];
    kernel->quotes_ = node.attr<bool>("use_quote_delim");
    kernel->missing_ = node.attr<std::string>("na_value");
    kernel->columns_ = node.attr<AttrList>("select_cols").ints;
    const std::vector<int64_t>& columns = kernel->columns_;
    const size_t types = node.attr<AttrList>("OUT_TYPE").types.size();
    if (!columns.empty() && columns.size() != types) {
      return InvalidArgument("select_cols should match output size");
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] < 0) {
        return InvalidArgument("select_cols should be non-negative");
      }
      if (i > 0 && columns[i] <= columns[i - 1]) {
        return InvalidArgument("select_cols should be strictly increasing");
      }
    }
    return kernel;
  }

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& records = ctx.input(0);
    const int columns = ctx.num_outputs();
    std::vector<Tensor*> outputs;
    for (int i = 0; i < columns; ++i) {
      if (ctx.input(1 + i).size() > 1) {
        return InvalidArgument(
            "There should only be 1 default per field but field ", i, " has ",
            ctx.input(1 + i).size());
      }
      SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(i, records.shape()));
      outputs.push_back(&out);
    }
    for (int64_t r = 0; r < records.size(); ++r) {
      Splitter splitter(records.data<std::string>()[r], delimiter_, quotes_);
      SLUICE_ASSIGN_OR_RETURN(std::vector<std::string> fields,
                              splitter.Split());
      SLUICE_RETURN_IF_ERROR(Select(r, columns, &fields));
      for (int i = 0; i < columns; ++i) {
        SLUICE_RETURN_IF_ERROR(
            SetField(fields[i], ctx.input(1 + i), i, r, outputs[i]));
      }
    }
    return absl::OkStatus();
  }

 private:
  // Leaves only the columns asked for.
  absl::Status Select(int64_t record, int columns,
                      std::vector<std::string>* fields) const {
    std::vector<std::string> selected;
    for (int64_t column : columns_) {
      if (column < static_cast<int64_t>(fields->size())) {
        selected.push_back(std::move((*fields)[column]));
      }
    }
    if (!columns_.empty()) *fields = std::move(selected);
    if (static_cast<int>(fields->size()) == columns) return absl::OkStatus();
    return InvalidArgument("Expect ", columns, " fields but have ",
                           fields->size(), " in record ", record);
  }

  absl::Status SetField(const std::string& field, const Tensor& missing,
                        int column, int64_t record, Tensor* out) const {
    if (field.empty() || field == missing_) {
      if (missing.size() == 0) {
        return InvalidArgument("Field ", column,
                               " is required but missing in record ", record,
                               "!");
      }
      CopyElements(missing, 0, out, record, 1);
      return absl::OkStatus();
    }
    if (SetElementFromText(field, out, record)) return absl::OkStatus();
    return InvalidArgument("Field ", column, " in record ", record,
                           " is not a valid ", DTypeName(out->dtype()), ": ",
                           field);
  }

  char delimiter_ = ',';
  bool quotes_ = true;
  std::string missing_;
  std::vector<int64_t> columns_;
};

absl::Status CsvShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    const PartialShape& value = c.input(i);
    if (value.known_rank() && value.rank() > 1) {
      return InvalidArgument(
          "Shape of a default must be a length-0 or "
          "length-1 vector, or a scalar.");
    }
    if (value.known_rank() && value.rank() == 1 && value.dim(0) > 1) {
      return InvalidArgument(
          "Shape of a default must be a length-0 or "
          "length-1 vector, or a scalar.");
    }
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return absl::OkStatus();
}

}  // namespace decode_csv
}  // namespace

SLUICE_OP(DecodeCSV)
    .Input("records: string")
    .Input("record_defaults: OUT_TYPE")
    .Output("output: OUT_TYPE")
    .Attr("OUT_TYPE: list({float, double, int32, int64, string}) >= 1")
    .Attr("field_delim: string = ','")
    .Attr("use_quote_delim: bool = true")
    .Attr("na_value: string = ''")
    .Attr("select_cols: list(int) = []")
    .Shape(decode_csv::CsvShape)
    .NotDifferentiable();

SLUICE_KERNEL(DecodeCSV, kCpu).Class<decode_csv::DecodeCsvKernel>();

}  // namespace sluice
