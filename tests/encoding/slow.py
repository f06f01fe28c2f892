"""An encoder that waits to be let go on, so that there is time to end its process."""

import os
import time
from pathlib import Path

from selfsent.encoding import BatchEncoder, job
from selfsent.encoding.job import make_job, missing
from selfsent.encoding.on_ray import encode_on_ray

ROWS = 10


class Held(BatchEncoder):
    """Tells its process number under `place`, and waits while `hold` is there and so many parts are made."""

    def __init__(self, model, place, parts=0):
        super().__init__(model)
        self.place, self.parts = Path(place), parts

    def vectors_of_clean(self, texts):
        made = len(list((self.place / "out").glob("part-*.parquet")))
        if made >= self.parts:
            (self.place / "pids" / str(os.getpid())).touch()
            while (self.place / "hold").exists():
                time.sleep(0.05)
        return super().vectors_of_clean(texts)


def encode(model, place, parts=0, workers=2):
    """Encode `in.parquet` of a place into its `out`, in parts of `ROWS` rows; the names of the parts done now."""
    job.ROWS = ROWS
    work, all_parts = make_job(Held(model, place, parts), [f"{place}/in.parquet"], f"{place}/out", carry=("id",))
    done = []
    encode_on_ray(work, missing(work, all_parts), workers, advance=lambda each: done.append(each.name))
    return done


if __name__ == "__main__":
    import sys

    encode(sys.argv[1], sys.argv[2], parts=2)
