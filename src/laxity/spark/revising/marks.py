"""What is noted beside a row's own columns while a revise works on a batch."""

KEY, US, AT = "_key", "_us", "_at"  # beside a row's own columns, while a batch is worked on
OLD = "_old"  # whether a row is kept from the batches before, and was on time or due there
NEW = "_new"  # whether it is late, in this batch or since it waits; on time if neither
WAITED = "_waited"  # whether it was late in a batch before
DUE = "_due"
REASON = "_reason"
BESIDE = "_beside"  # the neighbour of a row that is now its key's last; null for others
LATE = "_late"  # the times of a key's rows that are due
FRESH = "_fresh"  # whether none of a key's counted rows is from the last span before this batch
LATELY = "_lately"  # whether any of them is late
ON_TIME = "_n_on_time"  # how many of a key's rows came on time
NOTED = "_noted"  # a key's holes that were left behind
NOTE = "struct<lo: bigint, hi: bigint, first_us: bigint, last_us: bigint>"
OF_KEY = (FRESH, LATELY, ON_TIME, NOTED)
OPEN = "_holes"  # a key's open holes
LEAVING = "_leaving"  # its rows that are not recent any more, and near a hole
WAITS = f"{NEW} AND NOT {DUE} AND {REASON} IS NULL"
