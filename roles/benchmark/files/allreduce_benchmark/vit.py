# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ViT-B/16 for ImageNet: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020, arXiv:2010.11929, table 1."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PARAMETERS = 86_567_656  # at 224 x 224 pixels
PATCH, WIDTH, HEADS, DEPTH, HIDDEN = 16, 768, 12, 12, 3072


class VisionTransformer(nn.Module):
    """ViT-B/16 with random weights, for square images of one size."""

    def __init__(self, image_size: int = 224, classes: int = 1000):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.position = nn.Parameter(torch.empty(1, (image_size // PATCH) ** 2 + 1, WIDTH).normal_(std=0.02))
        self.blocks = nn.Sequential(*(Block() for _number in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, classes)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(images), -1, -1), patches], dim=1) + self.position
        return self.head(self.norm(self.blocks(tokens))[:, 0])


class Block(nn.Module):
    """Attention and a perceptron, each after a norm and parallel to a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(WIDTH, eps=1e-6)
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.attended = nn.Linear(WIDTH, WIDTH)
        self.before_perceptron = nn.LayerNorm(WIDTH, eps=1e-6)
        self.perceptron = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, WIDTH))

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attend(self.before_attention(tokens))
        return tokens + self.perceptron(self.before_perceptron(tokens))

    def attend(self, tokens: Tensor) -> Tensor:
        batch, length, _width = tokens.shape
        split = self.projections(tokens).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*split.unbind(0))
        return self.attended(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
