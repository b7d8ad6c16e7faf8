"""What every test stands on: one thread, so that small models are quick and a busy machine changes nothing."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
