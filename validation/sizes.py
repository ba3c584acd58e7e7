"""How much is measured: every point of every curve, or what still holds each of them to its answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Points of the curves, and how large the drives are; what is allowed does not depend on it."""

    name: str
    spares: tuple[float, ...]
    """Over-provisioning of the points on the closed form of write amplification."""
    superblock_units: int
    """Programming units of 48 pages in each superblock, where superblocks are to be large."""
    finite_blocks: tuple[tuple[int, int], ...]
    """Pages in a superblock, and superblocks, where the superblocks are to be small."""
    hot_superblocks: int
    """Superblocks of 256 pages of the drives with hot and cold data; none are measured without any."""
    cliff_spares: tuple[float, ...]
    cliff_superblocks: int
    cached_models: tuple[str, ...]
    cached_model_scale: int
    """By how much the models with an SLC cache are scaled down."""
    mapped_spans_gib: tuple[int, ...]
    mapped_reads: int
    program_shares: tuple[float, ...]
    """Of the time, of which dies program while reads come."""
    tail_reads: int
    thermal_resistances_c_per_w: tuple[float, ...]
    buffers_mib: tuple[int, ...]
    burst_ratios: tuple[float, ...]
    """Rates of bursts over what the NAND programs."""
    trims: tuple[int, ...]
    """How many come at once."""
    depths: tuple[int, ...]
    depth_reads: int
    housekeeping_s: tuple[tuple[float, float], ...]
    """Period and length of a drive's background stalls."""


FULL = Sizes(
    name="full",
    spares=(0.07, 0.085, 0.10, 0.125, 0.16, 0.20, 0.28, 0.37, 0.50),
    superblock_units=85,
    finite_blocks=((256, 2048), (64, 4096)),
    hot_superblocks=768,
    cliff_spares=(0.07, 0.28),
    cliff_superblocks=800,
    cached_models=("consumer-dramless", "consumer-dramless-small-slc", "consumer-highend", "consumer-qlc"),
    cached_model_scale=10,
    mapped_spans_gib=(32, 64, 80, 96, 128, 192, 256),
    mapped_reads=1_000_000,
    program_shares=(0.02, 0.03, 0.05, 0.10, 0.20, 0.40),
    tail_reads=100_000,
    thermal_resistances_c_per_w=(2.8, 3.2, 4.0, 5.0, 6.5, 8.0),
    buffers_mib=(16, 64),
    burst_ratios=(1.25, 1.5, 2.0, 3.0, 5.0, 10.0),
    trims=(500, 1_000, 2_000, 3_000, 4_000),
    depths=(1, 2, 4, 8, 16, 32, 64, 128, 256),
    depth_reads=400_000,
    housekeeping_s=((15.0, 1.2), (20.0, 1.5), (25.0, 3.0), (30.0, 2.0)),
)
QUICK = Sizes(
    name="quick",
    spares=(0.28,),
    superblock_units=21,
    finite_blocks=((64, 2048),),
    hot_superblocks=0,
    cliff_spares=(0.28,),
    cliff_superblocks=500,
    cached_models=("consumer-dramless-small-slc",),
    cached_model_scale=20,
    mapped_spans_gib=(32, 128),
    mapped_reads=50_000,
    program_shares=(0.10,),
    tail_reads=40_000,
    thermal_resistances_c_per_w=(8.0,),
    buffers_mib=(64,),
    burst_ratios=(3.0,),
    trims=(1_000, 2_000),
    depths=(16,),
    depth_reads=100_000,
    housekeeping_s=((20.0, 1.5),),
)
