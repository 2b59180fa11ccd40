"""Reads a bibliography with the libraries that are there; prints what they read as JSON.

usage: read.py FILE.bib
"""
import json
import sys

bib, = sys.argv[1:]
read = {}

try:
    import bibtexparser
    library = bibtexparser.parse_file(bib)
    assert not library.failed_blocks, library.failed_blocks
    read["bibtexparser"] = [{"type": e.entry_type, "key": e.key, "title": e.get("title").value if e.get("title") else ""} for e in library.entries]
except ImportError:
    pass

try:
    import pybtex.database
    data = pybtex.database.parse_file(bib)
    read["pybtex"] = [{"type": e.type, "key": key, "title": e.fields.get("title", "")} for key, e in data.entries.items()]
except ImportError:
    pass

json.dump(read, sys.stdout)
