"""How much is measured: the committed figures are those of the full plan; the quick one is for a look."""

from dataclasses import dataclass

# Beside the growing number: so many features where rows grow, so many rows where features grow.
FEATURES, ROWS = 10, 500
SITES = 8


@dataclass(frozen=True, order=True)
class Size:
    """Rows and features of SD, the synthetic mixture of five clusters."""

    rows: int
    features: int

    @property
    def dataset(self) -> str:
        """Its name among the cases."""
        return f"SD-{self.rows}x{self.features}"


@dataclass(frozen=True)
class Plan:
    """All sizes. Rivals are run at the `compared` ones; the others are for the growth of ours."""

    # (data, rows, features); half of the rows are candidates. SD falls into a few clusters, so that candidates soon
    # die; in one Gaussian there is nothing to find, thousands of candidates live on, and every epoch stays expensive.
    learner: tuple[tuple[str, int, int], ...]
    fusion: tuple[tuple[int, int, int], ...]  # micro-clusters, features, clusters
    rows: tuple[int, ...]
    features: tuple[int, ...]
    compared_rows: tuple[int, ...]
    compared_features: tuple[int, ...]
    profiled: int  # rows
    two_jobs: tuple[int, ...]  # rows
    micro_clusters: int  # of the server's memory
    wide: tuple[int, int]  # rows, features
    fleet: tuple[int, int]  # sites, rows of each
    first: int  # rows of the first summary
    copied: int  # numbers, for the bandwidth
    multiplied: int  # side of square matrices, for the flop rate
    patience: float = 15.0  # seconds; what took longer in sum is not repeated
    longest: float = 60.0  # seconds; a rival that would take longer is left out
    judged: bool = True  # by the targets, which are for sizes that are worth it

    @property
    def by_rows(self) -> list[Size]:
        """Where rows grow."""
        return [Size(rows, FEATURES) for rows in self.rows]

    @property
    def by_features(self) -> list[Size]:
        """Where features grow."""
        return [Size(ROWS, features) for features in self.features]

    @property
    def with_rivals(self) -> list[Size]:
        """Where all methods are run."""
        rows = [size for size in self.by_rows if size.rows in self.compared_rows]
        return rows + [size for size in self.by_features if size.features in self.compared_features]


FULL = Plan(
    learner=(("SD", 12_500, 10), ("SD", 5_000, 36), ("SD", 2_000, 500), ("one Gaussian", 12_500, 10)),
    fusion=((2_000, 10, 5), (2_000, 16, 26), (2_000, 36, 10), (2_000, 150, 10), (20_000, 16, 10)),
    rows=(10_000, 30_000, 100_000, 300_000, 1_000_000),
    features=(1_000, 2_000, 5_000, 10_000),
    compared_rows=(10_000, 100_000, 1_000_000),
    compared_features=(1_000, 10_000),
    profiled=100_000,
    two_jobs=(100_000, 1_000_000),
    micro_clusters=20_000,
    wide=(20_000, 1_024),
    fleet=(20_000, 50),
    first=3_000,
    copied=32_000_000,
    multiplied=1_500,
)
QUICK = Plan(
    learner=(("SD", 500, 4), ("one Gaussian", 500, 4)),
    fusion=((100, 3, 2),),
    rows=(400, 800, 1_600),
    features=(20, 40),
    compared_rows=(400, 1_600),
    compared_features=(40,),
    profiled=1_600,
    two_jobs=(1_600,),
    micro_clusters=300,
    wide=(200, 16),
    fleet=(20, 10),
    first=100,
    copied=1_000_000,
    multiplied=200,
    judged=False,
)
