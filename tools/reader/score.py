#!/usr/bin/env python3
"""Fits the scales of the extractive reasoner and writes internal/reason/extractive/weights.go.

  go run ./tools/reader/fit questions.jsonl > scored.jsonl      # with the reader;  -plain: without
  python3 tools/reader/score.py scored.jsonl… [--plain scored-plain.jsonl…]

The first line orders candidates: the likelihood that the chosen one is right, among those of its question. The other
two are logistic regressions over the best candidate: is it right, and is there an answer at all. All numbers printed
are by five folds of questions; the committed weights are of all of them. Needs numpy, scipy, scikit-learn.
"""
import argparse, json, re, sys
import numpy as np
from scipy.optimize import minimize
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

NAMES = ['featAnswers', 'featAbout', 'featSpan', 'featRead', 'featOwn', 'featWindow', 'featRank', 'featNear', 'featNames', 'featNumbers', 'featDate', 'featThin']
MORE = ['oddsScore', 'oddsMargin', 'oddsMost', 'oddsSpan']
FAR, MOST = 3., 80
HEDGE = {'withReader': .4, 'withoutReader': .15}
OVER, SLACK = .06, .25                       # share of answerable questions that may be refused, and how far under that the odds are cut

def fold(s):
    for a, b in (('’', "'"), ('‘', "'"), ('“', '"'), ('”', '"'), ('–', '-'), ('—', '-'), ('\\', '')):
        s = s.replace(a, b)
    return ' '.join(re.sub(r'\[\d+\]', '', s.lower()).split())
def has(text, keys):
    t = fold(text)
    for k in keys:
        parts = [fold(p) for p in k.split('&&')]
        if all(re.search(r'(?<!\d)' + re.escape(p) + r'(?!\d)', t) for p in parts): return True
    return False
def auroc(y, s):
    y = np.asarray(y, bool); r = rankdata(s)
    return (r[y].sum() - y.sum()*(y.sum()+1)/2) / max(1, y.sum()*(~y).sum())

def load(path):
    out = []
    for line in open(path):
        r = json.loads(line); s = r['seen']
        if not s['Features']: continue
        F = np.array(s['Features'])[:MOST]
        ok = np.array([not r['none'] and has(t, r['keys']) for t in s['Texts'][:MOST]])
        short = np.array([not r['none'] and bool(r.get('short')) and has(w, r['short']) and len(w.split()) <= 25 for w in s['Words'][:MOST]])
        out.append(dict(set=path, none=r['none'], F=F, ok=ok, short=short))
    return out

def order(rows, l2=.02):
    rows = [r for r in rows if r['ok'].any()]
    def loss(w):
        L, g = 0., np.zeros(len(w))
        for r in rows:
            s = r['F'] @ w; e = np.exp(s - s.max()); a = e[r['ok']].sum()
            L -= np.log(a/e.sum() + 1e-12); g -= r['F'].T @ (np.where(r['ok'], e, 0)/(a + 1e-12) - e/e.sum())
        return L/len(rows) + l2*(w @ w)/2, g/len(rows) + l2*w
    return minimize(loss, np.zeros(len(NAMES)), jac=True, method='L-BFGS-B').x

def best(r, w):
    s = r['F'] @ w; o = np.argsort(-s, kind='stable'); F = r['F'][o[0]]
    margin = min(FAR, s[o[0]] - s[o[1]]) if len(o) > 1 else FAR
    return o, np.concatenate([F, [s[o[0]], margin, r['F'][:, 0].max(), r['F'][:, 2].max()]])

def line(X, y):
    mean, std = X.mean(0), X.std(0); std[std < 1e-6] = np.inf       # what never changes tells nothing
    m = LogisticRegression(C=.3, max_iter=2000).fit((X - mean)/std, y)
    w = m.coef_[0]/std
    return np.append(w, m.intercept_[0] - (w*mean).sum())

def fit(rows):
    w = order(rows); X = np.array([best(r, w)[1] for r in rows])
    right = np.array([bool(r['ok'][best(r, w)[0][0]]) for r in rows]); exists = np.array([not r['none'] for r in rows])
    return w, line(X, right), line(X, exists)

def measure(rows, name):
    rng = np.random.RandomState(1); part = rng.randint(0, 5, len(rows)); got = []
    for k in range(5):
        w, a, b = fit([r for r, p in zip(rows, part) if p != k])
        for r, p in zip(rows, part):
            if p == k:
                o, x = best(r, w); got.append((r, o, x @ a[:-1] + a[-1], x @ b[:-1] + b[-1]))
    exists = np.array([not r['none'] for r, *_ in got]); odds = np.array([g[3] for g in got])
    refuse = np.sort(odds[exists])[int(OVER*exists.sum())]
    for s in sorted({r['set'] for r in rows}):
        g = [x for x in got if x[0]['set'] == s]; A = [x for x in g if not x[0]['none']]; N = [x for x in g if x[0]['none']]
        right = np.array([bool(x[0]['ok'][x[1][0]]) for x in g]); p = 1/(1 + np.exp(-np.array([x[2] for x in g])))
        said = np.array([x[3] >= refuse for x in g])
        print(f'{name} {s}: n {len(A)}+{len(N)}, first {np.mean([x[0]["ok"][x[1][0]] for x in A]):.3f}, in two {np.mean([x[0]["ok"][x[1][:2]].any() for x in A]):.3f}, '
              f'words {np.mean([x[0]["short"][x[1][0]] for x in A]):.3f}, refused {np.mean([x[3] < refuse for x in N]) if N else 0:.3f} of none and {np.mean([x[3] < refuse for x in A]):.3f} of others, '
              f'right AUROC {auroc(right, p):.3f} (said: {auroc(right[said], p[said]):.3f}), exists AUROC {auroc([not x[0]["none"] for x in g], [x[3] for x in g]) if N else 0:.3f}, '
              f'ECE {np.mean(abs(p[said] - right[said])) if 0 else abs(p[said].mean() - right[said].mean()):.3f}')
    return refuse

def emit(rows, name):
    refuse = measure(rows, name) - SLACK; w, a, b = fit(rows)
    own = [r for r in rows if r['set'] == A.centre] or rows              # how likely is right, where people ask
    x = np.array([best(r, w)[1] @ a[:-1] + a[-1] for r in own]); keep = np.array([best(r, w)[1] @ b[:-1] + b[-1] for r in own]) >= refuse
    right = np.array([bool(r['ok'][best(r, w)[0][0]]) for r in own])[keep].mean()
    a[-1] += min(np.linspace(-2, 2, 401), key=lambda s: abs((1/(1 + np.exp(-x[keep] - s))).mean() - right))
    show = lambda v, names: ', '.join(f'{n}: {x:.3f}' for n, x in zip(names, v) if abs(x) >= .0005)
    every = NAMES + MORE + ['numOdds']
    return (f'\t{name} = scale{{\n\t\tweights: [numFeatures]float64{{{show(w, NAMES)}}},\n\t\tright:   [numOdds + 1]float64{{{show(a, every)}}},\n'
            f'\t\texists:  [numOdds + 1]float64{{{show(b, every)}}},\n\t\thedge:   {HEDGE[name]},\n\t\trefuse:  {refuse:.3f},\n\t}}\n')

ap = argparse.ArgumentParser(); ap.add_argument('scored', nargs='+'); ap.add_argument('--plain', nargs='*', default=[])
ap.add_argument('--centre', default=''); ap.add_argument('--write', default='internal/reason/extractive/weights.go'); A = ap.parse_args()
out = emit([r for p in A.scored for r in load(p)], 'withReader')
plain = emit([r for p in A.plain for r in load(p)], 'withoutReader') if A.plain else None
text = open(A.write).read(); head = text[:text.index('var (')]
if plain is None: plain = text[text.index('\twithoutReader'):text.rindex(')')]
open(A.write, 'w').write(head + 'var (\n' + out + plain + ')\n')
