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


FULL = Sizes(
    name="full",
    spares=(0.07, 0.085, 0.10, 0.125, 0.16, 0.20, 0.28, 0.37, 0.50),
    superblock_units=85,
    finite_blocks=((256, 4096), (64, 8192)),
    hot_superblocks=1024,
    cliff_spares=(0.07, 0.28),
    cliff_superblocks=800,
    cached_models=("consumer-dramless", "consumer-dramless-small-slc", "consumer-highend", "consumer-qlc"),
    cached_model_scale=10,
    mapped_spans_gib=(32, 64, 80, 96, 128, 192, 256),
    mapped_reads=1_000_000,
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
)
