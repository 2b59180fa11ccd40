#!/usr/bin/env python3
"""What the reader was not trained on, for the suites and the trainer of package internal/eval/support.

  python3 tools/reader/held.py PACK DATA internal/eval/support

Writes seen.txt, the hashes of claims of the public sets that the pack trains on, which the suites leave out, and
ordinary.jsonl.gz, the claims of ordinary documents that the pack holds out. To be run when the pack has changed.
"""
import glob, gzip, json, lzma, sys

pack, data, out = sys.argv[1:4]
rows = [json.loads(l) for p in sorted(glob.glob(pack + '/*.jsonl.xz')) if not p.endswith('eval.jsonl.xz') for l in lzma.open(p)]
rows = [r for r in rows if r.get('t') == 'nli' and r['k'] == 'A']
read = {r['h'] for r in rows if not r.get('d')}
claims = {json.loads(l)['claim'] for p in glob.glob(data + '/c*/*.jsonl.gz') if '/scifact-corpus' not in p for l in gzip.open(p) if b'"claim"' in l}

def fnv(s):
    h = 0x811c9dc5
    for b in s.encode():
        h = (h ^ b) * 0x01000193 & 0xffffffff
    return h

with open(out + '/seen.txt', 'w') as f:
    f.write('\n'.join(sorted('%08x' % fnv(c) for c in claims & read)) + '\n')
held = {}
for r in rows:
    if r.get('d') and r.get('s') == 'claims' and r['h'] not in read:
        first = held.setdefault(r['h'], {'id': str(len(held)), 'heading': '', 'passage': r['p'], 'claim': r['h'], 'label': ('true', 'false', 'refuted')[r['y']]})
        if r['p'].endswith('. ' + first['passage']):
            first['heading'] = r['p'][:-2-len(first['passage'])]
with open(out + '/ordinary.jsonl.gz', 'wb') as f, gzip.GzipFile(filename='', mode='wb', fileobj=f, mtime=0) as z:
    z.write(''.join(json.dumps(r, ensure_ascii=False) + '\n' for r in held.values()).encode())
print(len(claims & read), 'claims seen,', len(held), 'held out', file=sys.stderr)
