#!/usr/bin/env python3
"""Turns documents that were written by hand, with their questions and claims, into training pairs.

  python3 pairs.py ordinary/*.txt --words swaps.txt --base train.jsonl.xz --out more.jsonl.xz

A file holds documents, each with three parts:

  ##### DOC name.ext | genre     the text
  ##### QA                       Q: and A: (exact words; alternatives after ||), Y: question :: yes|no :: sentence,
                                 L: question :: item || item, N: a question that the document does not answer
  ##### CLAIMS                   E|C|U: claim :: exact excerpt (entailed, contradicted, unsupported)

Documents are cut into windows by the program itself (go run ./tools/reader/windows). Every tenth document is
held out. Questions of other sets get near misses, too: a word changed into its opposite, a number into another.
"""
import argparse, collections, glob, json, lzma, os, random, re, subprocess, sys, tempfile

def read(path):
    docs, part, bad = [], None, []
    for n, line in enumerate(open(path, encoding='utf-8'), 1):
        line = line.rstrip('\n')
        m = re.match(r'^##### (DOC|QA|CLAIMS)\b ?(.*)$', line)
        if m:
            part = m[1]
            if part == 'DOC':
                docs.append(dict(name=m[2].split('|')[0].strip(), lines=[], q=[], y=[], n=[], l=[], c=[]))
            continue
        if part is None:
            continue
        d = docs[-1]
        if part == 'DOC':
            d['lines'].append(line)
            continue
        text = d.setdefault('text', '\n'.join(d['lines']).strip('\n') + '\n')
        kind, _, rest = line.partition(': ')
        cut = [x.strip() for x in rest.split('::')]
        quoted = []
        if kind == 'Q':
            d['q'].append([rest.strip(), []])
        elif kind == 'A':
            quoted = [x.strip() for x in rest.split('||')]
            d['q'][-1][1] = quoted
        elif kind == 'N':
            d['n'].append(rest.strip())
        elif kind == 'Y' and len(cut) == 3:
            d['y'].append(cut)
            quoted = cut[2:]
        elif kind == 'L' and len(cut) == 2:
            quoted = [x.strip() for x in cut[1].split('||')]
            d['l'].append([cut[0], quoted])
        elif kind in ('E', 'C', 'U') and len(cut) == 2:
            d['c'].append([kind] + cut)
            quoted = cut[1:]
        elif line.strip():
            bad.append(f'{path}:{n}: {line[:60]!r}')
        bad += [f'{path}:{n}: not in the text: {x!r}' for x in quoted if x not in text]
    return [d for d in docs if 'text' in d], bad

def windows(docs):
    """cuts the documents as the program does"""
    with tempfile.TemporaryDirectory() as tmp:
        paths = []
        for i, d in enumerate(docs):
            os.mkdir(f'{tmp}/{i}')
            paths.append(f'{tmp}/{i}/' + d['name'].replace('/', '_'))
            open(paths[-1], 'w').write(d['text'])
        exe = tmp + '/windows'
        subprocess.run(['go', 'build', '-o', exe, './tools/reader/windows'], check=True)
        out = subprocess.run([exe] + paths, check=True, capture_output=True, text=True).stdout
    got = {os.path.dirname(r['name']).rsplit('/', 1)[1]: r['windows'] for r in map(json.loads, out.splitlines())}
    for i, d in enumerate(docs):
        d['w'] = got.get(str(i)) or []

words = lambda s: set(re.findall(r'[a-z0-9]{2,}', s.lower()))

def near(d, question, ks):
    """the windows that share most words with a question, best first"""
    q = words(question)
    return sorted(ks, key=lambda k: -len(q & words(d['w'][k]['h'] + ' ' + d['w'][k]['x'])))

def sentence(x, s, e):
    """the line or sentence of a window around a span"""
    cuts = [0] + [m.end() for m in re.finditer(r'(?<=[.!?])\s+(?=[A-Z0-9"“\[])|\n', x)] + [len(x)]
    a = max(c for c in cuts if c <= s)
    b = min(c for c in cuts if c >= e)
    return [a, b]

def place(d, question, answers):
    """the window that answers, and where in it"""
    best = None
    q = words(question)
    for k, w in enumerate(d['w']):
        for a in answers:
            for m in re.finditer(re.escape(a), w['x']):
                s = sentence(w['x'], *m.span())
                v = 3*len(q & words(w['x'][s[0]:s[1]])) + 2*len(q & words(w['h'])) + len(q & words(w['x']))
                if best is None or v > best[0]:
                    best = v, k, m.start(), m.end()
    return best and best[1:]

class Rows:
    def __init__(self):
        self.contexts, self.rows = [], []
    def doc(self, d, held):
        base = len(self.contexts)
        for w in d['w']:
            self.contexts.append({'t': 'c', 'x': w['x'], 'h': w['h'], 'm': 1})
        every = range(len(d['w']))
        def add(row, name='ordinary'):
            self.rows.append(dict(row, s=name, k='A', **({'d': 1} if held else {})))
        def rivals(q, k):
            return [base + j for j in near(d, q, [j for j in every if j != k])[:4]]
        for q, answers in d['q'] + d['l']:
            at = place(d, q, answers)
            if at is None:
                continue
            k, s, e = at
            x = d['w'][k]['x']
            spans = [[s, e]]
            for a in answers:
                i = x.find(a)
                if i >= 0 and [i, i + len(a)] not in spans:
                    spans.append([i, i + len(a)])
            miss = random.sample(d['n'], min(2, len(d['n'])))
            add({'t': 'qa', 'q': q, 'c': base + k, 'a': spans, 'ds': sentence(x, s, e), 'n': rivals(q, k), 'qs': miss})
        for q in d['n']:
            for k in near(d, q, every)[:2]:
                add({'t': 'qa', 'q': q, 'c': base + k, 'a': None})
        for q, yes, deciding in d['y']:
            at = place(d, q, [deciding])
            if at is None:
                continue
            k, s, e = at
            w = d['w'][k]
            add({'t': 'qa', 'q': q, 'c': base + k, 'a': 'yes', 'reg': [[s, e]], 'n': rivals(q, k), 'qs': random.sample(d['n'], min(1, len(d['n'])))})
            y = 0 if yes == 'yes' else 2
            add({'t': 'nli', 'p': deciding, 'h': q, 'y': y}, 'decides')
            add({'t': 'nli', 'p': w['h'] + '. ' + w['x'], 'h': q, 'y': y}, 'decides')
            others = rivals(q, k)
            if others:
                o = self.contexts[others[0]]
                add({'t': 'nli', 'p': o['h'] + '. ' + o['x'], 'h': q, 'y': 1}, 'decides')
        for kind, claim, excerpt in d['c']:
            y = 'EUC'.index(kind)
            at = place(d, claim, [excerpt])
            head = d['w'][at[0]]['h'] if at else ''
            add({'t': 'nli', 'p': excerpt, 'h': claim, 'y': y}, 'claims')
            if head:
                add({'t': 'nli', 'p': head + '. ' + excerpt, 'h': claim, 'y': y}, 'claims')

def swaps(path):
    """word -> words that make a question another one"""
    out = collections.defaultdict(set)
    for line in open(path):
        line = line.split('#')[0].strip()
        if ';' in line:
            for pair in line.split(';'):
                two = pair.split()
                if len(two) == 2:
                    out[two[0]].add(two[1]); out[two[1]].add(two[0])
        else:
            kind = line.split()
            for w in kind:
                out[w] |= set(kind) - {w}
    return {k: sorted(v) for k, v in out.items()}

def miss(question, swap):
    """a question with one word changed, or None"""
    toks = re.findall(r'\w+|\W+', question)
    at = [i for i, t in enumerate(toks) if t.lower() in swap or re.fullmatch(r'\d{1,4}', t)]
    if not at:
        return None
    i = random.choice(at)
    if toks[i].isdigit():
        n = int(toks[i])
        toks[i] = str(n + random.choice([-20, -7, -3, -2, -1, 1, 2, 3, 5, 10, 25]) if n > 30 else n + random.randint(1, 9))
    else:
        w = random.choice(swap[toks[i].lower()])
        toks[i] = w.capitalize() if toks[i][0].isupper() else w
    return ''.join(toks)

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('files', nargs='+'); ap.add_argument('--words'); ap.add_argument('--base'); ap.add_argument('--out', required=True)
    A = ap.parse_args()
    random.seed(7)
    docs, bad = [], []
    for f in sorted(A.files):
        d, b = read(f); docs += d; bad += b
    for b in bad:
        print(b, file=sys.stderr)
    windows(docs)
    R = Rows()
    for i, d in enumerate(docs):
        R.doc(d, i % 10 == 0)
    print(len(docs), 'documents', len(R.contexts), 'windows', dict(collections.Counter((r['s'], r['t']) for r in R.rows)), file=sys.stderr)
    with lzma.open(A.out, 'wt') as f:
        for r in R.contexts + R.rows:
            f.write(json.dumps(r, ensure_ascii=False) + '\n')
    if A.words and A.base:
        swap = swaps(A.words)
        made = {}
        with lzma.open(A.base, 'rt') as f:
            n = 0
            for line in f:
                r = json.loads(line)
                if r['t'] == 'qa':
                    if isinstance(r['a'], list) and r['s'] not in ('notes', 'dart', 'zre'):
                        got = {miss(r['q'], swap) for _ in range(3)} - {None}
                        if got:
                            made[n] = sorted(got)[:2]
                    n += 1
        json.dump(made, open(A.out + '.misses.json', 'w'))
        print(len(made), 'questions got near misses', file=sys.stderr)
main()
