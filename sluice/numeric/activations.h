// Constants that an activation and its derivative share.
#pragma once

namespace sluice::numeric {

// Of "Self-normalizing neural networks": fixed points of mean and variance.
inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kSeluAlpha = 1.6732632423543772848170429916717;

}  // namespace sluice::numeric
