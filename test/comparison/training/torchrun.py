# SPDX-License-Identifier: Apache-2.0
"""torchrun as it is, but for one thing: Debian builds PyTorch without libuv, and torchrun's rendezvous c10d has no setting for its store."""
import functools

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous import c10d_rendezvous_backend
from torch.distributed.run import main

c10d_rendezvous_backend.TCPStore = functools.partial(TCPStore, use_libuv=False)
main()
