"""The tuners and libraries of the race: a row each."""

from benchmarks.race.peers.inductor import INDUCTOR
from benchmarks.race.peers.iree import IREE, IREE_DATA_TILING
from benchmarks.race.peers.openblas import OPENBLAS
from benchmarks.race.peers.ours import COLD_TUNER, TUNER
from benchmarks.race.peers.tvm import TVM
from benchmarks.race.peers.xtc import XTC

BASELINE = OPENBLAS.name  # of ratios, where it has the type
PEERS = {
    peer.name: peer for peer in (OPENBLAS, TUNER, COLD_TUNER, XTC, TVM, IREE, IREE_DATA_TILING, INDUCTOR)
}
