"""Empty defaults for the parts of Hadoop that an embedded Spark does not use.

For every job Spark copies all settings of Hadoop, 700 of which are defaults of YARN and MapReduce,
read from two files on the class path. Files of the same names that come first leave them out. They
are in a jar because Java archives loaded classes only where the class path has no folder.
"""

import io
import zipfile
from pathlib import Path

from laxity.cache_folder import cache_folder, cached_file

NAMES = ("mapred-default.xml", "yarn-default.xml")
_EMPTY = '<?xml version="1.0"?>\n<configuration/>\n'
_MADE = (2026, 1, 1, 0, 0, 0)  # the same in every jar, so that one that is there will do


def empty_defaults() -> Path:
    """The jar, in the user's cache folder."""
    return cached_file(cache_folder(), "hadoop-defaults.jar", _jar())


def _jar() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as jar:
        for name in NAMES:
            jar.writestr(zipfile.ZipInfo(name, _MADE), _EMPTY)
    return content.getvalue()
