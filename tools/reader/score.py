#!/usr/bin/env python3
"""Fits the scales of the extractive reasoner and writes internal/reason/extractive/weights.go.

  go test ./internal/reason/extractive -run TestFit -timeout 0 -questions $PWD/questions.jsonl -scored $PWD/scored.jsonl      # with the reader;  -plain: without
  python3 tools/reader/score.py scored.jsonl… [--plain scored-plain.jsonl…]

The first line orders candidates: the likelihood that the chosen one is right, among those of its question. The second
orders the best of them again, after the closer look. The other two are logistic regressions over the best candidate: is
it or the next one right, among what is not refused, and is there an answer at all. A file with squad in its name counts little
in the first of them, and does not move the threshold of refusal. All numbers printed are by five folds of questions; the committed weights are of all of them. Needs numpy, scipy, scikit-learn.
"""
import argparse, json, re, sys
import numpy as np
from scipy.optimize import minimize
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

NAMES = ['featAnswers', 'featAbout', 'featSpan', 'featRead', 'featOwn', 'featWindow', 'featRank', 'featNear', 'featNames', 'featNumbers', 'featDate', 'featThin',
         'featCloserAnswers', 'featCloserAbout', 'featCloserSpan', 'featCloserNear']
MORE = ['oddsScore', 'oddsMargin', 'oddsMost', 'oddsSpan']
FIRST, CLOSER = 12, 12                       # features that are known before the closer look, and how many candidates get one
SURE = ['featAnswers', 'featRank', 'oddsMargin', 'oddsMost']      # what tells, of what is not refused, whether it is right: more tells no more
FAR, MOST = 3., 80
HEDGE = {'withReader': .4, 'withoutReader': .15}
OVER = .06                                   # share of answerable questions that may be refused
OTHERS = .2                                  # what a question of SQuAD counts, beside one about a folder, for how likely an answer is right

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

def ece(p, y, n=10):
    k = np.minimum((p*n).astype(int), n - 1)
    return sum(abs((p - y)[k == b].sum()) for b in range(n))/len(p)

def load(path):
    out = []
    for line in open(path):
        r = json.loads(line); s = r['seen']
        if not s['Features']: continue
        F = np.array(s['Features'])[:MOST]
        ok = np.array([not r['none'] and has(t, r['keys']) for t in s['Texts'][:MOST]])
        if r.get('kind') in ('yes', 'no') and not ok.any(): continue          # its key may be several sentences
        short = np.array([not r['none'] and bool(r.get('short')) and has(w, r['short']) and len(w.split()) <= 25 for w in s['Words'][:MOST]])
        out.append(dict(set=path, none=r['none'], F=F, ok=ok, short=short))
    return out

def order(rows, n, l2=.02):
    rows = [r for r in rows if r['ok'].any()]
    def loss(w):
        L, g = 0., np.zeros(len(w))
        for r in rows:
            F = r['F'][:, :n]; s = F @ w; e = np.exp(s - s.max()); a = e[r['ok']].sum()
            L -= np.log(a/e.sum() + 1e-12); g -= F.T @ (np.where(r['ok'], e, 0)/(a + 1e-12) - e/e.sum())
        return L/len(rows) + l2*(w @ w)/2, g/len(rows) + l2*w
    return minimize(loss, np.zeros(n), jac=True, method='L-BFGS-B').x

def best(r, w):
    """the order by both lines, and what tells whether its first is right"""
    first, closer = w; F = r['F']
    s = F[:, :FIRST] @ first; o = np.argsort(-s, kind='stable')
    if closer is not None:
        s = np.where(np.isin(np.arange(len(s)), o[:CLOSER]), F @ closer, -1e9); o = np.concatenate([o[:CLOSER][np.argsort(-s[o[:CLOSER]], kind='stable')], o[CLOSER:]])
    margin = min(FAR, s[o[0]] - s[o[1]]) if len(o) > 1 else FAR
    return o, np.concatenate([F[o[0]], [s[o[0]], margin, F[:, 0].max(), F[:, 2].max()]])

def line(X, y, weight=None):
    mean, std = X.mean(0), X.std(0); std[std < 1e-6] = np.inf       # what never changes tells nothing
    m = LogisticRegression(C=.3, max_iter=2000).fit((X - mean)/std, y, weight)
    w = m.coef_[0]/std
    return np.append(w, m.intercept_[0] - (w*mean).sum())

def under(odds): return np.sort(odds)[int(OVER*len(odds))]  # the odds under which as many as may be are refused
def folder(r): return 'squad' not in r['set']           # what people ask their folders; SQuAD's questions are made to look answerable
def said(r, o): return bool(r['ok'][o[:2]].any())       # people get two sentences

def fit(rows, name):
    first, closer = order(rows, FIRST), None
    if name == 'withReader':
        near = []
        for r in rows:
            o = np.argsort(-(r['F'][:, :FIRST] @ first), kind='stable')[:CLOSER]; near.append(dict(F=r['F'][o], ok=r['ok'][o]))
        closer = order(near, len(NAMES))
    w = first, closer; X = np.array([best(r, w)[1] for r in rows])
    right = np.array([said(r, best(r, w)[0]) for r in rows]); exists = np.array([not r['none'] for r in rows]); own = np.array([folder(r) for r in rows])
    b = line(X, exists); e = X @ b[:-1] + b[-1]; told = e >= under(e[exists & own])
    if name == 'withReader': X = X*np.isin(NAMES + MORE, SURE)
    return w, line(X[told], right[told], np.where(own, 1., OTHERS)[told]), b

def measure(rows, name):
    rng = np.random.RandomState(1); part = rng.randint(0, 5, len(rows)); got = []
    for k in range(5):
        w, a, b = fit([r for r, p in zip(rows, part) if p != k], name)
        for r, p in zip(rows, part):
            if p == k:
                o, x = best(r, w); got.append((r, o, x @ a[:-1] + a[-1], x @ b[:-1] + b[-1]))
    exists = np.array([not r['none'] for r, *_ in got]); odds = np.array([g[3] for g in got])
    asked = exists & np.array([folder(r) for r, *_ in got])       # SQuAD's are seldom refused
    refuse = under(odds[asked])
    for s in sorted({r['set'] for r in rows}) + ['folders']:
        g = [x for x in got if x[0]['set'] == s or s == 'folders' and folder(x[0])]; A = [x for x in g if not x[0]['none']]; N = [x for x in g if x[0]['none']]
        right = np.array([said(x[0], x[1]) for x in g]); p = 1/(1 + np.exp(-np.array([x[2] for x in g])))
        told = np.array([x[3] >= refuse for x in g])
        print(f'{name} {s}: n {len(A)}+{len(N)}, first {np.mean([x[0]["ok"][x[1][0]] for x in A]):.3f}, in two {np.mean([x[0]["ok"][x[1][:2]].any() for x in A]):.3f}, '
              f'words {np.mean([x[0]["short"][x[1][0]] for x in A]):.3f}, refused {np.mean([x[3] < refuse for x in N]) if N else 0:.3f} of none and {np.mean([x[3] < refuse for x in A]):.3f} of others, '
              f'right AUROC {auroc(right, p):.3f} (told: {auroc(right[told], p[told]):.3f}), exists AUROC {auroc([not x[0]["none"] for x in g], [x[3] for x in g]) if N else 0:.3f}, '
              f'sure {p[told].mean():.3f}, right {right[told].mean():.3f}, ECE {ece(p[told], right[told]):.3f}')
    return refuse

def emit(rows, name):
    refuse = measure(rows, name); w, a, b = fit(rows, name)
    show = lambda v, names: ', '.join(f'{n}: {x:.3f}' for n, x in zip(names, v) if abs(x) >= .0005)
    every = NAMES + MORE + ['numOdds']
    closer = '' if w[1] is None else f'\t\tcloser:  [numFeatures]float64{{{show(w[1], NAMES)}}},\n'
    return (f'\t{name} = scale{{\n\t\tweights: [numFeatures]float64{{{show(w[0], NAMES)}}},\n{closer}\t\tright:   [numOdds + 1]float64{{{show(a, every)}}},\n'
            f'\t\texists:  [numOdds + 1]float64{{{show(b, every)}}},\n\t\thedge:   {HEDGE[name]},\n\t\trefuse:  {refuse:.3f},\n\t}}\n')

ap = argparse.ArgumentParser(); ap.add_argument('scored', nargs='+'); ap.add_argument('--plain', nargs='*', default=[])
ap.add_argument('--write', default='internal/reason/extractive/weights.go'); A = ap.parse_args()
out = emit([r for p in A.scored for r in load(p)], 'withReader')
plain = emit([r for p in A.plain for r in load(p)], 'withoutReader') if A.plain else None
text = open(A.write).read(); head = text[:text.index('var (')]
if plain is None: plain = text[text.index('\twithoutReader'):text.rindex(')')]
open(A.write, 'w').write(head + 'var (\n' + out + plain + ')\n')
