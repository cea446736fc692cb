"""A stream that is not started yet: what stages are added to."""

from dataclasses import dataclass, replace
from typing import Self

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from laxity.errors import ConfigError
from laxity.spark.engine.branch import Branch
from laxity.spark.engine.stage import Stage


@dataclass(frozen=True)
class Draft:
    """Inputs and stages, the rows of the sources, the columns of the results; never changed."""

    branch: Branch
    rows: DataFrame
    schema: StructType
    deadline_us: int | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What its rows go through."""
        return self.branch.stages

    def then(self, stage: Stage, schema: StructType) -> Self:
        """The same with one more stage, whose results have these columns."""
        if stage.name in [one.name for one in self.stages]:
            raise ConfigError(f"there is a stage {stage.name} already: state it once")
        branch = replace(self.branch, stages=(*self.stages, stage))
        return replace(self, branch=branch, schema=schema)

    @property
    def empty(self) -> DataFrame:
        """No results, with their columns."""
        return self.rows.sparkSession.createDataFrame([], self.schema)
