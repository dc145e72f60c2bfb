# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ResNet-50 for ImageNet: He et al., "Deep Residual Learning for Image Recognition", 2015, arXiv:1512.03385.

The stride is in the 3x3 convolution of a bottleneck, as in today's reference implementations ("version 1.5").
"""

from __future__ import annotations

from torch import Tensor, nn

PARAMETERS = 25_557_032
STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))  # channels within a bottleneck, number of bottlenecks
EXPANSION = 4


def resnet50(classes: int = 1000) -> nn.Sequential:
    """Return ResNet-50 with random weights."""
    layers: list[nn.Module] = [*_convolution(3, 64, 7, stride=2), nn.MaxPool2d(3, stride=2, padding=1)]
    channels = 64
    for stage, (width, count) in enumerate(STAGES):
        for number in range(count):
            layers.append(Bottleneck(channels, width, stride=2 if stage and not number else 1))
            channels = width * EXPANSION
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Bottleneck(nn.Module):
    """Three convolutions parallel to a shortcut."""

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        wide = width * EXPANSION
        self.body = nn.Sequential(
            *_convolution(channels, width, 1),
            *_convolution(width, width, 3, stride),
            *_convolution(width, wide, 1)[:-1],
        )
        nn.init.zeros_(self.body[-1].weight)  # a bottleneck begins as its shortcut
        changed = stride > 1 or channels != wide
        self.shortcut = nn.Sequential(*_convolution(channels, wide, 1, stride)[:-1]) if changed else nn.Identity()
        self.last = nn.ReLU(inplace=True)

    def forward(self, images: Tensor) -> Tensor:
        return self.last(self.body(images) + self.shortcut(images))


def _convolution(channels: int, width: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(channels, width, kernel, stride, padding=kernel // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return [convolution, nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
