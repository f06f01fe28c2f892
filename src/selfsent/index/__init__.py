"""An index on disk: built from a corpus, changed in place, and searched by `Index`."""

from selfsent.index.index import Index as Index
from selfsent.index.writer import Added as Added, write_index as write_index
