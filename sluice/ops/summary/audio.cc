// AudioSummaryV2 and AudioSummary: sounds of a step for TensorBoard, as WAV.

#include <algorithm>
#include <cmath>

#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/proto/summary.pb.h"

namespace sluice {
namespace {
namespace audio_summary {

void AppendLittleEndian(uint32_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) {
    out->push_back(static_cast<char>(value >> (8 * i)));
  }
}

int16_t Sample(float value) {
  if (std::isnan(value)) return 0;
  return static_cast<int16_t>(
      std::clamp(std::round(value * 32768.0f), -32768.0f, 32767.0f));
}

// A WAV file with 16 bits a sample; the channels of a frame lie together.
std::string EncodeWav(std::span<const float> samples, uint32_t sample_rate,
                      int64_t channels) {
  constexpr uint32_t kSampleBytes = 2;
  constexpr uint32_t kHeaderBytes = 36;  // After the first eight.
  const uint32_t data_bytes =
      static_cast<uint32_t>(samples.size()) * kSampleBytes;
  const uint32_t frame_bytes = static_cast<uint32_t>(channels) * kSampleBytes;
  std::string out = "RIFF";
  AppendLittleEndian(kHeaderBytes + data_bytes, 4, &out);
  out += "WAVEfmt ";
  AppendLittleEndian(16, 4, &out);  // Bytes of what follows up to "data".
  AppendLittleEndian(1, 2, &out);   // Plain samples.
  AppendLittleEndian(static_cast<uint32_t>(channels), 2, &out);
  AppendLittleEndian(sample_rate, 4, &out);
  AppendLittleEndian(sample_rate * frame_bytes, 4, &out);
  AppendLittleEndian(frame_bytes, 2, &out);
  AppendLittleEndian(8 * kSampleBytes, 2, &out);
  out += "data";
  AppendLittleEndian(data_bytes, 4, &out);
  for (const float sample : samples) {
    AppendLittleEndian(static_cast<uint16_t>(Sample(sample)), 2, &out);
  }
  return out;
}

absl::Status Check(const Tensor& tag, const Tensor& tensor, float rate) {
  if (tag.rank() != 0) return InvalidArgument("Tag must be a scalar");
  if (tensor.rank() != 2 && tensor.rank() != 3) {
    return InvalidArgument("Tensor must be 3-D or 2-D, got: ",
                           tensor.shape().DebugString());
  }
  // The format counts in 32 bits, channels in 16.
  if (!(rate > 0 && rate < 1e9f)) {
    return InvalidArgument("sample_rate must be > 0 and below 1e9, got ", rate);
  }
  const int64_t channels = tensor.rank() == 2 ? 1 : tensor.dim(2);
  if (channels < 1 || channels > 32767) {
    return InvalidArgument("A sound has 1 to 32767 channels, not ", channels);
  }
  if (tensor.dim(1) > (int64_t{1} << 30) / channels) {
    return InvalidArgument("A sound of ", tensor.dim(1), " frames in ",
                           channels, " channels is too long for WAV");
  }
  return absl::OkStatus();
}

// Of sounds without frames, whose headers take memory all the same.
constexpr int64_t kMostEmpty = 1 << 10;

absl::Status Summarize(KernelContext& ctx, float rate) {
  const Tensor& tag = ctx.input(0);
  const Tensor& tensor = ctx.input(1);
  SLUICE_RETURN_IF_ERROR(Check(tag, tensor, rate));
  const int64_t frames = tensor.dim(1);
  const int64_t channels = tensor.rank() == 2 ? 1 : tensor.dim(2);
  const int64_t max_outputs = ctx.attr<int64_t>("max_outputs");
  const int64_t outputs = std::min(max_outputs, tensor.dim(0));
  if (tensor.size() == 0 && outputs > kMostEmpty) {
    return InvalidArgument("Sounds without frames: ",
                           tensor.shape().DebugString());
  }
  pb::Summary summary;
  for (int64_t i = 0; i < outputs; ++i) {
    const std::span<const float> samples =
        tensor.data<float>().subspan(i * frames * channels, frames * channels);
    pb::Summary::Value* value = summary.add_value();
    value->set_tag(StrCat(tag.scalar<std::string>(), "/audio",
                          max_outputs > 1 ? StrCat("/", i) : std::string()));
    pb::Summary::Audio* audio = value->mutable_audio();
    audio->set_sample_rate(rate);
    audio->set_num_channels(channels);
    audio->set_length_frames(frames);
    audio->set_content_type("audio/wav");
    audio->set_encoded_audio_string(
        EncodeWav(samples, static_cast<uint32_t>(std::lrint(rate)), channels));
  }
  ctx.set_output(0, Tensor::Scalar(summary.SerializeAsString()));
  return absl::OkStatus();
}

absl::Status RunV2(KernelContext& ctx) {
  if (ctx.input(2).rank() != 0) {
    return InvalidArgument("sample_rate must be a scalar, got shape ",
                           ctx.input(2).shape().DebugString());
  }
  return Summarize(ctx, ctx.input(2).scalar<float>());
}

absl::Status RunV1(KernelContext& ctx) {
  return Summarize(ctx, ctx.attr<float>("sample_rate"));
}

}  // namespace audio_summary
}  // namespace

SLUICE_OP(AudioSummaryV2)
    .Input("tag: string")
    .Input("tensor: float")
    .Input("sample_rate: float")
    .Output("summary: string")
    .Attr("max_outputs: int >= 1 = 3")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(AudioSummary)
    .Input("tag: string")
    .Input("tensor: float")
    .Output("summary: string")
    .Attr("sample_rate: float")
    .Attr("max_outputs: int >= 1 = 3")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_KERNEL(AudioSummaryV2, kCpu).Function(audio_summary::RunV2);
SLUICE_KERNEL(AudioSummary, kCpu).Function(audio_summary::RunV1);

}  // namespace sluice
