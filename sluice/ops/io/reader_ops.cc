// The ops on readers: each kind of reader and each thing to do with one, for
// both forms of handles.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/io/reader_kinds.h"
#include "sluice/ops/state/resource_kernel.h"

namespace sluice {
namespace {
namespace reader_ops {

constexpr char kReaderType[] = "N10tensorflow15ReaderInterfaceE";

absl::Status NotNegative(const KernelConstruction& node, const char* attr) {
  const int64_t value = node.attr<int64_t>(attr);
  if (value >= 0) return absl::OkStatus();
  return InvalidArgument(attr, " must be >= 0 not ", value);
}

struct Identity {
  static absl::StatusOr<Identity> Create(const KernelConstruction&) {
    return Identity();
  }
  RefPtr<Reader> Make(const std::string& name) const {
    return MakeRef<IdentityReader>(name);
  }
};

struct WholeFile {
  static absl::StatusOr<WholeFile> Create(const KernelConstruction&) {
    return WholeFile();
  }
  RefPtr<Reader> Make(const std::string& name) const {
    return MakeRef<WholeFileReader>(name);
  }
};

struct TextLine {
  static absl::StatusOr<TextLine> Create(const KernelConstruction& node) {
    SLUICE_RETURN_IF_ERROR(NotNegative(node, "skip_header_lines"));
    return TextLine{node.attr<int64_t>("skip_header_lines")};
  }
  RefPtr<Reader> Make(const std::string& name) const {
    return MakeRef<TextLineReader>(name, skip);
  }
  int64_t skip = 0;
};

struct FixedLength {
  static absl::StatusOr<FixedLength> Create(const KernelConstruction& node) {
    for (const char* attr :
         {"header_bytes", "record_bytes", "footer_bytes", "hop_bytes"}) {
      SLUICE_RETURN_IF_ERROR(NotNegative(node, attr));
    }
    FixedLengthRecordReader::Layout layout;
    layout.header = node.attr<int64_t>("header_bytes");
    layout.record = node.attr<int64_t>("record_bytes");
    layout.footer = node.attr<int64_t>("footer_bytes");
    layout.hop = node.attr<int64_t>("hop_bytes");
    // Nothing of a file would ever be used up.
    if (layout.record == 0) {
      return InvalidArgument("record_bytes must be > 0 not 0");
    }
    if (const std::string* encoding =
            node.node().attrs().Find<std::string>("encoding")) {
      SLUICE_ASSIGN_OR_RETURN(layout.packing, ParseCompression(*encoding));
    }
    return FixedLength{layout};
  }
  RefPtr<Reader> Make(const std::string& name) const {
    return MakeRef<FixedLengthRecordReader>(name, layout);
  }
  FixedLengthRecordReader::Layout layout;
};

struct TfRecord {
  static absl::StatusOr<TfRecord> Create(const KernelConstruction& node) {
    TfRecord kind;
    SLUICE_ASSIGN_OR_RETURN(
        kind.packing,
        ParseCompression(node.attr<std::string>("compression_type")));
    return kind;
  }
  RefPtr<Reader> Make(const std::string& name) const {
    return MakeRef<TfRecordReader>(name, packing);
  }
  Compression packing = Compression::kNone;
};

template <typename Kind>
class ReaderKernel : public SharedResourceKernel<Reader> {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    SLUICE_ASSIGN_OR_RETURN(Kind kind, Kind::Create(node));
    SLUICE_ASSIGN_OR_RETURN(ResourceName name,
                            NameResource(node, UnsharedName::kPrivate));
    return std::make_unique<ReaderKernel>(node, std::move(name),
                                          std::move(kind));
  }
  ReaderKernel(const KernelConstruction& node, const ResourceName& name,
               Kind kind)
      : SharedResourceKernel(node, name, kReaderType),
        reader_name_(name.name),
        kind_(std::move(kind)) {}

 protected:
  RefPtr<Reader> Make() const override { return kind_.Make(reader_name_); }
  absl::Status Match(const Reader& existing, const Node& node) const override {
    const RefPtr<Reader> made = Make();
    const Reader& mine = *made;
    if (typeid(existing) == typeid(mine)) return absl::OkStatus();
    return InvalidArgument("Shared reader '", reader_name_,
                           "' is of another kind than ", node.type());
  }

 private:
  const std::string reader_name_;
  const Kind kind_;
};

absl::StatusOr<RefPtr<Reader>> FindReader(const KernelContext& ctx) {
  return LookupResource<Reader>(ctx, 0, kReaderType);
}

class ReadKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction&) {
    return std::make_unique<ReadKernel>();
  }

  void Start(KernelContext& ctx, Done done) override {
    absl::StatusOr<RefPtr<Reader>> reader = FindReader(ctx);
    if (!reader.ok()) return done(reader.status());
    absl::StatusOr<RefPtr<Queue>> queue =
        LookupResource<Queue>(ctx, 1, kQueueType);
    if (!queue.ok()) return done(queue.status());
    absl::StatusOr<int64_t> most = Most(ctx);
    if (!most.ok()) return done(most.status());
    if (ctx.num_inputs() == 3 && *most == 0) return done(SetOutputs(ctx, {}));
    (*reader)->Read(*std::move(queue), *most, ctx,
                    [&ctx, done = std::move(done)](
                        absl::StatusOr<std::vector<Record>> records) mutable {
                      if (!records.ok()) return done(records.status());
                      done(SetOutputs(ctx, *std::move(records)));
                    });
  }

 private:
  // 0 for the ops that give a single record.
  static absl::StatusOr<int64_t> Most(const KernelContext& ctx) {
    if (ctx.num_inputs() < 3) return 0;
    const Tensor& most = ctx.input(2);
    if (most.rank() != 0) {
      return InvalidArgument("num_records must be a scalar, but has shape ",
                             most.shape().DebugString());
    }
    if (most.scalar<int64_t>() >= 0) return most.scalar<int64_t>();
    return InvalidArgument("num_records must be >= 0 not ",
                           most.scalar<int64_t>());
  }

  static absl::Status SetOutputs(KernelContext& ctx,
                                 std::vector<Record> records) {
    Shape shape;
    if (ctx.num_inputs() == 3) {
      shape.AddDim(static_cast<int64_t>(records.size()));
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor & keys, ctx.Output(0, shape));
    SLUICE_ASSIGN_OR_RETURN(Tensor & values, ctx.Output(1, shape));
    for (size_t i = 0; i < records.size(); ++i) {
      keys.mutable_data<std::string>()[i] = std::move(records[i].key);
      values.mutable_data<std::string>()[i] = std::move(records[i].value);
    }
    return absl::OkStatus();
  }
};

absl::Status Reset(KernelContext&, Reader& reader) {
  reader.Reset();
  return absl::OkStatus();
}

absl::Status Serialize(KernelContext& ctx, Reader& reader) {
  SLUICE_ASSIGN_OR_RETURN(std::string state, reader.SerializeState());
  ctx.set_output(0, Tensor::Scalar(std::move(state)));
  return absl::OkStatus();
}

absl::Status Restore(KernelContext& ctx, Reader& reader) {
  if (ctx.input(1).rank() != 0) {
    return InvalidArgument("Reader state must be scalar, but had shape: ",
                           ctx.input(1).shape().DebugString());
  }
  return reader.RestoreState(ctx.input(1).scalar<std::string>(),
                             ctx.device().files());
}

// Does something to a reader while nobody reads.
template <absl::Status (*kChange)(KernelContext&, Reader&)>
class ChangeKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction&) {
    return std::make_unique<ChangeKernel>();
  }
  void Start(KernelContext& ctx, Done done) override {
    const absl::StatusOr<RefPtr<Reader>> reader = FindReader(ctx);
    if (!reader.ok()) return done(reader.status());
    (*reader)->WhenIdle(
        ctx, [&ctx](Reader& idle) { return kChange(ctx, idle); },
        std::move(done));
  }
};

absl::Status RecordsProduced(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<Reader> reader, FindReader(ctx));
  ctx.set_output(0, Tensor::Scalar<int64_t>(reader->records_produced()));
  return absl::OkStatus();
}

absl::Status UnitsCompleted(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<Reader> reader, FindReader(ctx));
  ctx.set_output(0, Tensor::Scalar<int64_t>(reader->work_units_completed()));
  return absl::OkStatus();
}

absl::Status StringHandleShape(ShapeContext& c) {
  c.set_output(0, {2});
  return absl::OkStatus();
}

absl::Status ReadUpToShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  c.set_output(0, {-1});
  c.set_output(1, {-1});
  return absl::OkStatus();
}

}  // namespace reader_ops
}  // namespace

#define SLUICE_READER_OPS(NAME, ATTRS, ATTRS_V2)             \
  SLUICE_OP(NAME)                                            \
      .Output("reader_handle: Ref(string)") ATTRS.Stateful() \
      .Shape(reader_ops::StringHandleShape)                  \
      .NotDifferentiable();                                  \
  SLUICE_OP(NAME##V2)                                        \
      .Output("reader_handle: resource") ATTRS_V2.Stateful() \
      .Shape(shapes::Scalar)                                 \
      .NotDifferentiable()
#define SLUICE_NAME_ATTRS \
  .Attr("container: string = ''").Attr("shared_name: string = ''")
#define SLUICE_LENGTH_ATTRS          \
  .Attr("header_bytes: int = 0")     \
      .Attr("record_bytes: int")     \
      .Attr("footer_bytes: int = 0") \
      .Attr("hop_bytes: int = 0") SLUICE_NAME_ATTRS
#define SLUICE_LINE_ATTRS .Attr("skip_header_lines: int = 0") SLUICE_NAME_ATTRS
#define SLUICE_TFRECORD_ATTRS \
  SLUICE_NAME_ATTRS.Attr("compression_type: string = ''")
#define SLUICE_LENGTH_ATTRS_V2 SLUICE_LENGTH_ATTRS.Attr("encoding: string = ''")

SLUICE_READER_OPS(IdentityReader, SLUICE_NAME_ATTRS, SLUICE_NAME_ATTRS);
SLUICE_READER_OPS(WholeFileReader, SLUICE_NAME_ATTRS, SLUICE_NAME_ATTRS);
SLUICE_READER_OPS(TextLineReader, SLUICE_LINE_ATTRS, SLUICE_LINE_ATTRS);
SLUICE_READER_OPS(TFRecordReader, SLUICE_TFRECORD_ATTRS, SLUICE_TFRECORD_ATTRS);
SLUICE_READER_OPS(FixedLengthRecordReader, SLUICE_LENGTH_ATTRS,
                  SLUICE_LENGTH_ATTRS_V2);

#undef SLUICE_READER_OPS
#undef SLUICE_NAME_ATTRS
#undef SLUICE_LENGTH_ATTRS
#undef SLUICE_LINE_ATTRS
#undef SLUICE_TFRECORD_ATTRS
#undef SLUICE_LENGTH_ATTRS_V2

#define SLUICE_READ_OP(NAME, HANDLE)   \
  SLUICE_OP(NAME)                      \
      .Input("reader_handle: " HANDLE) \
      .Input("queue_handle: " HANDLE)  \
      .Output("key: string")           \
      .Output("value: string")         \
      .Shape(shapes::Scalar)           \
      .NotDifferentiable()
SLUICE_READ_OP(ReaderRead, "Ref(string)");
SLUICE_READ_OP(ReaderReadV2, "resource").Stateful();
#undef SLUICE_READ_OP

#define SLUICE_READ_UP_TO_OP(NAME, HANDLE) \
  SLUICE_OP(NAME)                          \
      .Input("reader_handle: " HANDLE)     \
      .Input("queue_handle: " HANDLE)      \
      .Input("num_records: int64")         \
      .Output("keys: string")              \
      .Output("values: string")            \
      .Shape(reader_ops::ReadUpToShape)    \
      .NotDifferentiable()
SLUICE_READ_UP_TO_OP(ReaderReadUpTo, "Ref(string)");
SLUICE_READ_UP_TO_OP(ReaderReadUpToV2, "resource").Stateful();
#undef SLUICE_READ_UP_TO_OP

#define SLUICE_READER_QUESTION(NAME, HANDLE, OUTPUT) \
  SLUICE_OP(NAME)                                    \
      .Input("reader_handle: " HANDLE)               \
      .Output(OUTPUT)                                \
      .Shape(shapes::Scalar)                         \
      .NotDifferentiable()
SLUICE_READER_QUESTION(ReaderNumRecordsProduced, "Ref(string)",
                       "records_produced: int64");
SLUICE_READER_QUESTION(ReaderNumRecordsProducedV2, "resource",
                       "records_produced: int64")
    .Stateful();
SLUICE_READER_QUESTION(ReaderNumWorkUnitsCompleted, "Ref(string)",
                       "units_completed: int64");
SLUICE_READER_QUESTION(ReaderNumWorkUnitsCompletedV2, "resource",
                       "units_completed: int64")
    .Stateful();
SLUICE_READER_QUESTION(ReaderSerializeState, "Ref(string)", "state: string");
SLUICE_READER_QUESTION(ReaderSerializeStateV2, "resource", "state: string")
    .Stateful();
#undef SLUICE_READER_QUESTION

SLUICE_OP(ReaderRestoreState)
    .Input("reader_handle: Ref(string)")
    .Input("state: string")
    .Shape([](ShapeContext& c) { return c.WithRank(1, 0).status(); })
    .NotDifferentiable();
SLUICE_OP(ReaderRestoreStateV2)
    .Input("reader_handle: resource")
    .Input("state: string")
    .Stateful()
    .Shape([](ShapeContext& c) { return c.WithRank(1, 0).status(); })
    .NotDifferentiable();
SLUICE_OP(ReaderReset)
    .Input("reader_handle: Ref(string)")
    .Shape(shapes::NoOutputs)
    .NotDifferentiable();
SLUICE_OP(ReaderResetV2)
    .Input("reader_handle: resource")
    .Stateful()
    .Shape(shapes::NoOutputs)
    .NotDifferentiable();

#define SLUICE_READER_KERNELS(NAME, ...)                      \
  SLUICE_KERNEL(NAME, kCpu).Class<reader_ops::__VA_ARGS__>(); \
  SLUICE_KERNEL(NAME##V2, kCpu).Class<reader_ops::__VA_ARGS__>()
SLUICE_READER_KERNELS(IdentityReader, ReaderKernel<reader_ops::Identity>);
SLUICE_READER_KERNELS(WholeFileReader, ReaderKernel<reader_ops::WholeFile>);
SLUICE_READER_KERNELS(TextLineReader, ReaderKernel<reader_ops::TextLine>);
SLUICE_READER_KERNELS(FixedLengthRecordReader,
                      ReaderKernel<reader_ops::FixedLength>);
SLUICE_READER_KERNELS(TFRecordReader, ReaderKernel<reader_ops::TfRecord>);
SLUICE_READER_KERNELS(ReaderRead, ReadKernel);
SLUICE_READER_KERNELS(ReaderReadUpTo, ReadKernel);
SLUICE_READER_KERNELS(ReaderReset, ChangeKernel<reader_ops::Reset>);
SLUICE_READER_KERNELS(ReaderSerializeState,
                      ChangeKernel<reader_ops::Serialize>);
SLUICE_READER_KERNELS(ReaderRestoreState, ChangeKernel<reader_ops::Restore>);
#undef SLUICE_READER_KERNELS

SLUICE_KERNEL(ReaderNumRecordsProduced, kCpu)
    .Function(reader_ops::RecordsProduced);
SLUICE_KERNEL(ReaderNumRecordsProducedV2, kCpu)
    .Function(reader_ops::RecordsProduced);
SLUICE_KERNEL(ReaderNumWorkUnitsCompleted, kCpu)
    .Function(reader_ops::UnitsCompleted);
SLUICE_KERNEL(ReaderNumWorkUnitsCompletedV2, kCpu)
    .Function(reader_ops::UnitsCompleted);

}  // namespace sluice
