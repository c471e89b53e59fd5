// ImageSummary: images of a step for TensorBoard, as PNG.

#include <algorithm>
#include <cmath>
#include <vector>

#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/summary/png.h"
#include "sluice/ops/summary/real_values.h"
#include "sluice/proto/summary.pb.h"

namespace sluice {
namespace {
namespace image_summary {

struct Size {
  int64_t height, width;
  int channels;
  int64_t pixels() const { return height * width; }
  int64_t bytes() const { return pixels() * channels; }
};

template <typename T>
bool AllFinite(const T* channels, int n) {
  return std::all_of(channels, channels + n,
                     [](T value) { return std::isfinite(value); });
}

// Spreads the values over 0…255: from 0 on if none is negative, else around
// 128. What is not finite gets `bad_color` and does not count.
template <typename T>
void Normalize(const T* values, const Size& size, const uint8_t* bad_color,
               uint8_t* out) {
  const int n = size.channels;
  T least = 0;
  T largest = 0;
  bool first = true;
  for (int64_t p = 0; p < size.pixels(); ++p) {
    if (!AllFinite(values + p * n, n)) continue;
    for (int c = 0; c < n; ++c) {
      const T value = values[p * n + c];
      least = first ? value : std::min(least, value);
      largest = first ? value : std::max(largest, value);
      first = false;
    }
  }
  // Smaller values are noise that must not be blown up.
  constexpr T kZero = static_cast<T>(1e-6);
  const bool around = least < 0;
  const T reach = around ? std::max(-least, std::abs(largest)) : largest;
  const T scale = reach < kZero ? T(0) : T(around ? 127 : 255) / reach;
  const T offset = around ? 128 : 0;
  for (int64_t p = 0; p < size.pixels(); ++p) {
    const bool good = AllFinite(values + p * n, n);
    for (int c = 0; c < n; ++c) {
      const T value = values[p * n + c] * scale + offset;
      out[p * n + c] = good ? static_cast<uint8_t>(value) : bad_color[c];
    }
  }
}

template <typename T>
bool NormalizeImage(const Tensor& tensor, int64_t image, const Size& size,
                    const uint8_t* bad_color, std::vector<uint8_t>* out) {
  std::vector<T> values(size.bytes());
  if (!RealValues(tensor, image * size.bytes(), size.bytes(), values.data())) {
    return false;
  }
  Normalize(values.data(), size, bad_color, out->data());
  return true;
}

// Image number `image` of the tensor as bytes.
absl::StatusOr<std::vector<uint8_t>> Pixels(const Tensor& tensor, int64_t image,
                                            const Size& size,
                                            const uint8_t* bad_color) {
  std::vector<uint8_t> pixels(size.bytes());
  if (tensor.dtype() == DType::kUint8) {
    std::copy_n(tensor.data<uint8_t>().data() + image * size.bytes(),
                size.bytes(), pixels.data());
    return pixels;
  }
  // Doubles are scaled as doubles, as that decides how they are cut off.
  const bool known =
      tensor.dtype() == DType::kDouble
          ? NormalizeImage<double>(tensor, image, size, bad_color, &pixels)
          : NormalizeImage<float>(tensor, image, size, bad_color, &pixels);
  if (!known) return Unimplemented("Image of ", DTypeName(tensor.dtype()));
  return pixels;
}

absl::StatusOr<Size> SizeOf(const Tensor& tensor) {
  const auto channels = [&] { return tensor.dim(3); };
  if (tensor.rank() != 4 ||
      (channels() != 1 && channels() != 3 && channels() != 4)) {
    return InvalidArgument("Tensor must be 4-D with last dim 1, 3, or 4, not ",
                           tensor.shape().DebugString());
  }
  if (tensor.dim(0) > 0 && (tensor.dim(1) == 0 || tensor.dim(2) == 0)) {
    return InvalidArgument("Images without pixels: ",
                           tensor.shape().DebugString());
  }
  return Size{tensor.dim(1), tensor.dim(2), static_cast<int>(channels())};
}

absl::Status CheckBadColor(const Tensor& color, int channels) {
  if (color.dtype() != DType::kUint8) {
    return InvalidArgument("bad_color must be uint8, got ",
                           DTypeName(color.dtype()));
  }
  if (color.rank() != 1) {
    return InvalidArgument("bad_color must be a vector, got shape ",
                           color.shape().DebugString());
  }
  if (color.size() < channels) {
    return InvalidArgument("bad_color needs ", channels, " values, got ",
                           color.size());
  }
  return absl::OkStatus();
}

absl::Status Run(KernelContext& ctx) {
  const Tensor& tag = ctx.input(0);
  const Tensor& tensor = ctx.input(1);
  if (tag.rank() != 0) return InvalidArgument("Tag must be a scalar");
  SLUICE_ASSIGN_OR_RETURN(const Size size, SizeOf(tensor));
  const Tensor bad_color = ctx.attr<Tensor>("bad_color");
  SLUICE_RETURN_IF_ERROR(CheckBadColor(bad_color, size.channels));
  const int64_t max_images = ctx.attr<int64_t>("max_images");
  pb::Summary summary;
  for (int64_t i = 0; i < std::min(max_images, tensor.dim(0)); ++i) {
    SLUICE_ASSIGN_OR_RETURN(
        const std::vector<uint8_t> pixels,
        Pixels(tensor, i, size, bad_color.data<uint8_t>().data()));
    SLUICE_ASSIGN_OR_RETURN(
        std::string png,
        EncodePng(pixels.data(), size.width, size.height, size.channels));
    pb::Summary::Value* value = summary.add_value();
    value->set_tag(StrCat(tag.scalar<std::string>(), "/image",
                          max_images > 1 ? StrCat("/", i) : std::string()));
    pb::Summary::Image* image = value->mutable_image();
    image->set_height(static_cast<int32_t>(size.height));
    image->set_width(static_cast<int32_t>(size.width));
    image->set_colorspace(size.channels);
    image->set_encoded_image_string(std::move(png));
  }
  ctx.set_output(0, Tensor::Scalar(summary.SerializeAsString()));
  return absl::OkStatus();
}

}  // namespace image_summary
}  // namespace

SLUICE_OP(ImageSummary)
    .Input("tag: string")
    .Input("tensor: T")
    .Output("summary: string")
    .Attr("max_images: int >= 1 = 3")
    .Attr("T: {uint8, float, half, double} = DT_FLOAT")
    .Attr(
        "bad_color: tensor = { dtype: DT_UINT8 "
        "tensor_shape: { dim { size: 4 } } "
        "int_val: 255 int_val: 0 int_val: 0 int_val: 255 }")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_KERNEL(ImageSummary, kCpu).Function(image_summary::Run);

}  // namespace sluice
