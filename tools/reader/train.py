#!/usr/bin/env python3
"""One run, round two: multi-task heads on MiniLM-L6 (NLI, answer span / no answer, relevance). Own code.

  python3 train.py --pack DIR --out DIR [--minutes 6] [--freeze 1] [--tiers A] [--tag x] [--maxlen 256] [--group 1] [--qaw 1.3]

Questions go in groups of four: the passage with the answer, two rivals (same document, nearest words, or the passage
without its answering sentence), and one near miss (a name, number, date swapped in the question, or the heading).

Needs torch, numpy, tokenizers. No network. Ends by the clock, whatever the speed.
"""
import argparse, collections, json, lzma, os, random, re, struct, time
import multiprocessing
mp = multiprocessing.get_context('fork')
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from tokenizers import BertWordPieceTokenizer

ap = argparse.ArgumentParser()
ap.add_argument('--pack', default='.'); ap.add_argument('--out', default='out'); ap.add_argument('--base', default='internal/embed/bert')
ap.add_argument('--more', default=''); ap.add_argument('--feeders', type=int, default=12); ap.add_argument('--warmfile', default=''); ap.add_argument('--misses', default=''); ap.add_argument('--own', type=float, default=3)
ap.add_argument('--minutes', type=float, default=6); ap.add_argument('--steps', type=int, default=0)
ap.add_argument('--epochs', type=float, default=7)
ap.add_argument('--freeze', type=int, default=1); ap.add_argument('--tiers', default='A')
ap.add_argument('--lr', type=float, default=1.2e-4); ap.add_argument('--tokens', type=int, default=24576)
ap.add_argument('--maxlen', type=int, default=256); ap.add_argument('--seed', type=int, default=1)
ap.add_argument('--every', type=int, default=3000); ap.add_argument('--limit', type=int, default=0)
ap.add_argument('--evlimit', type=int, default=0); ap.add_argument('--group', type=int, default=1); ap.add_argument('--qaw', type=float, default=1.3)
ap.add_argument('--headp', type=float, default=.5); ap.add_argument('--listw', type=float, default=.5)
ap.add_argument('--tag', default='m'); ap.add_argument('--drop', type=float, default=0.1)
ap.add_argument('--depth', type=int, default=6); ap.add_argument('--teachers', default=''); ap.add_argument('--soft', type=float, default=.7); ap.add_argument('--free', type=float, default=.5)
A = ap.parse_args()
T0 = time.time()
say = lambda *a: print(f'[{time.time()-T0:6.1f}s]', *a, flush=True)
dev = 'cuda' if torch.cuda.is_available() else 'cpu'
random.seed(A.seed); np.random.seed(A.seed); torch.manual_seed(A.seed)
os.makedirs(A.out, exist_ok=True)
amp = lambda: torch.autocast(dev, torch.bfloat16, enabled=dev == 'cuda')

# ---------------------------------------------------------------- model
class Layer(nn.Module):
    def __init__(s, h=384, f=1536, heads=12):
        super().__init__(); s.heads = heads
        s.qkv = nn.Linear(h, 3*h); s.out = nn.Linear(h, h); s.n1 = nn.LayerNorm(h, eps=1e-12)
        s.up = nn.Linear(h, f); s.down = nn.Linear(f, h); s.n2 = nn.LayerNorm(h, eps=1e-12)
    def forward(s, x, mask):
        B, L, H = x.shape
        q, k, v = s.qkv(x).view(B, L, 3, s.heads, H//s.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=A.drop if s.training else 0.)
        a = s.out(a.transpose(1, 2).reshape(B, L, H))
        x = s.n1(x + F.dropout(a, A.drop, s.training))
        return s.n2(x + F.dropout(s.down(F.gelu(s.up(x))), A.drop, s.training))

class Net(nn.Module):
    def __init__(s, depth=6, h=384, vocab=30522):
        super().__init__()
        s.tok = nn.Embedding(vocab, h); s.pos = nn.Embedding(512, h); s.typ = nn.Embedding(2, h)
        s.n0 = nn.LayerNorm(h, eps=1e-12); s.layers = nn.ModuleList(Layer(h) for _ in range(depth))
        s.pool = nn.Linear(h, h)
        s.nli = nn.Linear(h, 3); s.ans = nn.Linear(h, 1); s.rel = nn.Linear(h, 1); s.span = nn.Linear(h, 2)
    def forward(s, ids, typ, n):
        L = ids.shape[1]; at = torch.arange(L, device=ids.device)
        keep = at[None] < n[:, None]
        x = s.n0(s.tok(ids) + s.pos(at)[None] + s.typ(typ))
        x = F.dropout(x, A.drop, s.training)
        m = keep[:, None, None, :]
        for l in s.layers: x = l(x, m)
        p = torch.tanh(s.pool(x[:, 0]))
        p = F.dropout(p, A.drop, s.training)
        # span: only the second segment and place 0 (no answer)
        ok = keep & ((typ == 1) | (at[None] == 0))
        sp = s.span(x).float().masked_fill(~ok[..., None], -1e4)
        return s.nli(p).float(), s.ans(p).float().squeeze(-1), s.rel(p).float().squeeze(-1), sp

def packed(path):
    """a packed file (see internal/embed/bert/q8.go), of the embedder or of a reader, by the names of Net"""
    b = open(path, 'rb').read(); assert b[:4] == b'MWQ8'
    w = struct.unpack_from('<15I', b, 4); h, inner, depth, vocab, places, pair = w[1], w[3], w[4], w[5], w[6], w[8] & 16; at = 64
    def floats(n):
        nonlocal at; x = np.frombuffer(b, np.float32, n, at); at += 4*n; return x.copy()
    def ints(n):
        nonlocal at; x = np.frombuffer(b, np.int8, n, at); at += n; return x.astype(np.float32)
    def table(rows): s = floats(rows); return ints(rows*h).reshape(rows, h) * s[:, None]
    def matrix(i, o):
        s, bias = floats(o), floats(o)
        x = ints(i*o).reshape(o//16, i//2, 16, 2).transpose(0, 2, 1, 3).reshape(o, i)
        return x * s[:, None], bias
    sd = {} if pair else {'tok.weight': table(vocab)}
    sd['pos.weight'] = table(places); kind = floats(2*h if pair else h); sd['typ.weight'] = kind.reshape(2, h) if pair else np.stack([kind, kind])
    sd['n0.weight'], sd['n0.bias'] = floats(h), floats(h)
    for k in range(depth):
        o = f'layers.{k}.'
        for name, i, j in (('qkv', h, 3*h), ('out', h, h), ('up', h, inner), ('down', inner, h)): sd[o+name+'.weight'], sd[o+name+'.bias'] = matrix(i, j)
        for name in ('n1', 'n2'): sd[o+name+'.weight'], sd[o+name+'.bias'] = floats(h), floats(h)
    if pair:
        sd['pool.weight'], sd['pool.bias'] = matrix(h, h); rows, bias = floats(7*h).reshape(7, h), floats(7)
        for name, i, j in (('nli', 0, 3), ('ans', 3, 4), ('rel', 4, 5), ('span', 5, 7)): sd[name+'.weight'], sd[name+'.bias'] = rows[i:j], bias[i:j]
    assert at == len(b); return sd

def trained(path):
    """what an earlier run, or teacher.py, wrote"""
    b = open(path, 'rb').read(); n, = struct.unpack_from('<Q', b); got = {}
    for k, v in json.loads(b[8:8+n]).items():
        if k != '__metadata__': s, e = v['data_offsets']; got[k] = np.frombuffer(b[8+n+s:8+n+e], np.int8 if v['dtype'] == 'I8' else np.float32).reshape(v['shape'])
    return {k: got[k].astype(np.float32) * (got[k+'.scale'][:, None] if k+'.scale' in got else 1) for k in got if not k.endswith('.scale')}

def load(net, warm):
    """the embedder, then layers of earlier runs over it"""
    sd = packed(os.path.join(A.base, 'minilm.q8'))
    for path in filter(None, warm.split('+')): sd.update(packed(path) if path.endswith('.q8') else trained(path)); say('layers of', path)
    miss = net.load_state_dict({k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in sd.items()}, strict=False)
    say('begin at random:', miss.missing_keys)

# ---------------------------------------------------------------- data
tk = BertWordPieceTokenizer(os.path.join(A.base, 'vocab.txt'), lowercase=True)
CLS, SEP = tk.token_to_id('[CLS]'), tk.token_to_id('[SEP]')
def toks(texts, off=False):
    out = []
    for i in range(0, len(texts), 20000):
        for e in tk.encode_batch(texts[i:i+20000], add_special_tokens=False):
            out.append((np.array(e.ids, np.int32), e.offsets if off else None))
    return out
def rows(path):
    with lzma.open(path, 'rt') as f:
        return [json.loads(l) for l in f]

def fit(a, b, cap=None):
    """[CLS] a [SEP] b [SEP], the longer part cut"""
    cap = (cap or A.maxlen) - 3
    if len(a) + len(b) > cap:
        la = max(cap - len(b), min(len(a), cap // 2)); a = a[:la]; b = b[:cap - len(a)]
    ids = np.concatenate([[CLS], a, [SEP], b, [SEP]]).astype(np.int64)
    typ = np.zeros(len(ids), np.int64); typ[len(a)+2:] = 1
    return ids, typ

def windows(tokens, size, stride):
    if len(tokens) <= size: return [0]
    w = list(range(0, len(tokens) - size, stride)); w.append(len(tokens) - size)
    return w

def batch(items):
    n = torch.tensor([len(i[0]) for i in items]); L = (int(n.max()) + 7) // 8 * 8
    ids = torch.zeros(len(items), L, dtype=torch.long); typ = torch.zeros_like(ids)
    for k, (a, t) in enumerate(items):
        ids[k, :len(a)] = torch.from_numpy(a); typ[k, :len(a)] = torch.from_numpy(t)
    if dev == 'cuda': ids, typ, n = (x.pin_memory() for x in (ids, typ, n))
    return [x.to(dev, non_blocking=True) for x in (ids, typ, n)]

def host(items):
    n = torch.tensor([len(i[0]) for i in items]); L = (int(n.max()) + 7) // 8 * 8
    ids = torch.zeros(len(items), L, dtype=torch.long); typ = torch.zeros_like(ids)
    for k, (a, t) in enumerate(items): ids[k, :len(a)] = torch.from_numpy(a); typ[k, :len(a)] = torch.from_numpy(t)
    return ids, typ, n

@torch.no_grad()
def score(net, items, want_span=False):
    """all heads for all items, long ones together"""
    net.eval(); order = sorted(range(len(items)), key=lambda i: len(items[i][0]))
    out = [None]*len(items); i = 0
    while i < len(order):
        j = i; m = 0
        while j < len(order) and j - i < 2048:
            m = max(m, len(items[order[j]][0]))
            if m * (j - i + 1) > 4*A.tokens: break
            j += 1
        j = max(j, i+1); idx = order[i:j]; i = j
        with amp(): nl, an, re_, sp = net(*batch([items[k] for k in idx]))
        nl = nl.softmax(-1).cpu().numpy(); an = an.cpu().numpy(); re_ = re_.cpu().numpy()
        spn = sp.cpu().numpy() if want_span else None
        for r, k in enumerate(idx): out[k] = (nl[r], an[r], re_[r], spn[r] if want_span else None)
    return out

def auroc(y, s):
    y = np.asarray(y, bool); s = np.asarray(s, float)
    if y.all() or not y.any(): return float('nan')
    o = np.argsort(s, kind='mergesort'); r = np.empty(len(s)); ss = s[o]
    i = 0
    while i < len(s):
        j = i
        while j + 1 < len(s) and ss[j+1] == ss[i]: j += 1
        r[o[i:j+1]] = (i + j) / 2 + 1; i = j + 1
    return (r[y].sum() - y.sum()*(y.sum()+1)/2) / (y.sum()*(~y).sum())
def macrof1(y, p):
    y, p = np.asarray(y, bool), np.asarray(p, bool); f = []
    for c in (True, False):
        tp = ((p == c) & (y == c)).sum(); f.append(2*tp / max(1, (p == c).sum() + (y == c).sum()))
    return float(np.mean(f))
def crossf1(y, s):
    """macro F1 with the threshold taken from the other half"""
    y, s = np.asarray(y, bool), np.asarray(s, float); p = np.zeros(len(y), bool); h = np.arange(len(y)) % 2
    for k in (0, 1):
        a = h == k; c = np.unique(np.quantile(s[a], np.linspace(.02, .98, 97)))
        t = max(c, key=lambda t: macrof1(y[a], s[a] > t)); p[~a] = s[~a] > t
    return macrof1(y, p)
def recall_at(y, s, prec):
    y = np.asarray(y, bool); o = np.argsort(-np.asarray(s)); tp = np.cumsum(y[o]); pr = tp/np.arange(1, len(y)+1)
    ok = np.where(pr >= prec)[0]; return float(tp[ok[-1]]/y.sum()) if len(ok) else 0.

def norm_ans(s):
    s = re.sub(r'[^\w\s]', '', s.lower()); s = re.sub(r'\b(a|an|the)\b', ' ', s); return s.split()
def f1(p, golds):
    if not golds: return float(not norm_ans(p))
    best = 0.
    for g in golds:
        a, b = norm_ans(p), norm_ans(g); c = sum((collections.Counter(a) & collections.Counter(b)).values())
        if not a or not b: best = max(best, float(a == b))
        elif c: best = max(best, 2*c/(len(a)+len(b)))
    return best

class Evals:
    def __init__(s):
        R = rows(os.path.join(A.pack, 'eval.jsonl.xz'))
        if A.evlimit:
            c = collections.Counter(); K = []
            for r in R:
                c[r['e']] += 1
                if c[r['e']] <= (A.evlimit if r['e'] != 'squad' else max(2, A.evlimit//20)): K.append(r)
            R = K
        s.cl = [r for r in R if 'y' in r]; s.qa = [r for r in R if 'qs' in r]
        s.items, s.own = [], []
        P = toks(['\n'.join(r['p']) if isinstance(r['p'], list) else r['p'] for r in s.cl]); H = toks([r['h'] for r in s.cl])
        for i, ((p, _), (h, _)) in enumerate(zip(P, H)):
            h = h[:96]; size = A.maxlen - 3 - len(h)
            for w in windows(p, size, max(32, size*2//3)): s.items.append(fit(p[w:w+size], h)); s.own.append(i)
        s.qi, s.qo = [], []          # items; (qa index, question index, offsets of the window, chars)
        C = toks([r['c'] for r in s.qa], True)
        for i, r in enumerate(s.qa):
            Q = toks([q['q'] for q in r['qs']]); ct, co = C[i]
            for j, (q, _) in enumerate(Q):
                q = q[:48]; size = A.maxlen - 3 - len(q)
                for w in windows(ct, size, max(32, size//2)):
                    s.qi.append(fit(q, ct[w:w+size])); s.qo.append((i, j, w, len(q)))
        s.coff = [c[1] for c in C]
        say('eval items', len(s.items), 'claim windows,', len(s.qi), 'question windows')
    def run(s, net, held):
        res = {}
        o = score(net, s.items); best = np.zeros((len(s.cl), 2))
        for (nl, *_), i in zip(o, s.own): best[i] = np.maximum(best[i], (nl[0], nl[2]))
        for e in sorted({r['e'] for r in s.cl}):
            k = [i for i, r in enumerate(s.cl) if r['e'] == e]; y = np.array([s.cl[i]['y'] for i in k]); b = best[k]
            res[e] = {'n': len(k), 'support_auroc': auroc(y == 0, b[:, 0]), 'support_macroF1_x': crossf1(y == 0, b[:, 0])}
            if (y == 2).any():
                res[e]['contra_auroc'] = auroc(y == 2, b[:, 1]); res[e]['contra_recall@p.8'] = recall_at(y == 2, b[:, 1], .8)
                res[e]['contra_recall@p.9'] = recall_at(y == 2, b[:, 1], .9)
                if (y == 0).any(): m = y != 1; res[e]['sup_vs_ref_auroc'] = auroc(y[m] == 0, b[m, 0]-b[m, 1])
        o = score(net, s.qi, True); top = {}
        for (nl, an, rl, sp), (i, j, w, lq) in zip(o, s.qo):
            null = sp[0].sum(); st, en = sp[lq+2:, 0], sp[lq+2:, 1]; m = int((st > -9e3).sum()) - 1
            bs, ba = -1e9, (0, 0)
            if m > 0:
                cand = np.argsort(-st[:m])[:20]
                for a in cand:
                    z = en[a:min(m, a+30)]
                    if len(z): c = int(np.argmax(z)); v = st[a] + z[c]; bs, ba = (v, (a, a+c)) if v > bs else (bs, ba)
            off = s.coff[i]; txt = s.qa[i]['c'][off[w+ba[0]][0]:off[min(w+ba[1], len(off)-1)][1]] if off else ''
            old = top.get((i, j))
            t = [bs - null, float(an), float(rl), txt]
            if old is None: top[(i, j)] = t
            else:
                if t[0] > old[0]: old[0], old[3] = t[0], t[3]
                old[1] = max(old[1], t[1]); old[2] = max(old[2], t[2])
        for e in sorted({r['e'] for r in s.qa}):
            ks = [k for k in top if s.qa[k[0]]['e'] == e]; y = [bool(s.qa[i]['qs'][j]['a']) for i, j in ks]
            T = [top[k] for k in ks]; d = {'n': len(ks)}
            d['auroc_span'] = auroc(y, [t[0] for t in T]); d['auroc_ans'] = auroc(y, [t[1] for t in T])
            z = lambda v: (np.array(v) - np.mean(v)) / (np.std(v) + 1e-6)
            mix = z([t[0] for t in T]) + z([t[1] for t in T]); d['auroc_mix'] = auroc(y, mix)
            if e == 'squad':
                g = [s.qa[i]['qs'][j]['a'] for i, j in ks]; F = np.array([f1(t[3], a) if a else 0. for t, a in zip(T, g)]); y = np.array(y)
                d['hasans_F1_forced'] = float(F[y].mean()) if y.any() else 0
                o_ = np.argsort(-mix); gain = np.where(y[o_], F[o_], -1.).cumsum(); d['best_F1'] = float(((~y).sum() + max(0, gain.max())) / len(y))
            res[e] = d
        by = collections.defaultdict(list)
        for r in held: by[r['s']].append(r)
        for src, L in sorted(by.items()):
            o = score(net, [(r['ids'], r['typ']) for r in L])
            if L[0]['t'] == 'nli':
                y = np.array([r['y'] for r in L]); p = np.array([x[0] for x in o]); d = {'n': len(L), 'entail_auroc': auroc(y == 0, p[:, 0])}
                m = y < 3
                if m.any() and len(set(y[m])) > 2: d['acc3'] = float((p[m].argmax(1) == y[m]).mean())
                res['held_'+src] = d
            else:
                y = [r['a'] is not None for r in L]; res['held_'+src] = {'n': len(L), 'ans_auroc': auroc(y, [x[1] for x in o])}
        return res

def show(res, head):
    say('=====', head)
    for k, v in res.items(): print('   ', k.ljust(14), ' '.join(f'{a}={b:.4f}' if isinstance(b, float) else f'{a}={b}' for a, b in v.items()), flush=True)

# ---------------------------------------------------------------- int8 by row, as the Go kernel has it
def q8(w):
    s = w.abs().amax(1).clamp_min(1e-12) / 127; return torch.round(w / s[:, None]).clamp(-127, 127).to(torch.int8), s
def rounded(net):
    import copy
    n = copy.deepcopy(net)
    for name, p in n.named_parameters():
        if p.dim() == 2 and name.split('.')[0] not in ('typ', 'nli', 'ans', 'rel', 'span'):
            q, s = q8(p.data.float()); p.data = (q.float() * s[:, None]).to(p.dtype)
    return n
def save(net, path, meta, only=None):
    """safetensors written by hand: int8 rows + .scale for matrices, f32 for the rest"""
    t = {}
    for name, p in net.state_dict().items():
        if only and not only(name): continue
        if p.dim() == 2 and name.split('.')[0] not in ('typ', 'nli', 'ans', 'rel', 'span'):
            q, s = q8(p.float().cpu()); t[name] = q.numpy(); t[name+'.scale'] = s.numpy().astype(np.float32)
        else: t[name] = p.float().cpu().numpy()
    head, blob, at = {'__metadata__': {k: str(v) for k, v in meta.items()}}, [], 0
    for k, a in t.items():
        b = np.ascontiguousarray(a).tobytes(); head[k] = {'dtype': 'I8' if a.dtype == np.int8 else 'F32', 'shape': list(a.shape), 'data_offsets': [at, at+len(b)]}
        blob.append(b); at += len(b)
    h = json.dumps(head).encode(); h += b' ' * (-len(h) % 8)
    with open(path, 'wb') as f: f.write(struct.pack('<Q', len(h))); f.write(h); [f.write(b) for b in blob]
    say('wrote', path, os.path.getsize(path))

# ---------------------------------------------------------------- prepare

def main():
    say('torch', torch.__version__, dev, torch.cuda.get_device_name(0) if dev == 'cuda' else '')
    net = Net(A.depth); load(net, A.warmfile); net.to(dev)
    X = rows(os.path.join(A.pack, 'train.jsonl.xz'))
    for path in filter(None, A.more.split(',')):
        first = sum(r['t'] == 'c' for r in X); Y = rows(path)
        for r in Y:
            for f in ('c', 'pc'):
                if f in r and r['t'] != 'c': r[f] += first
            if 'n' in r: r['n'] = [k + first for k in r['n']]
        X += Y; say(path, len(Y), 'rows')
    if A.misses:                                 # questions with a word changed, by the number of the question
        Q = [r for r in X if r['t'] == 'qa']
        for k, v in json.load(lzma.open(A.misses)).items(): Q[int(k)]['qs'] = (Q[int(k)].get('qs') or []) + v
    CT = [r for r in X if r['t'] == 'c']; R = [r for r in X if r['t'] != 'c' and r['k'] in A.tiers and r.get('q' if r['t'] == 'qa' else 'h')]; del X
    random.shuffle(R)
    if A.limit: R = R[:A.limit]
    for r in R:
        r.setdefault('d', 0)
        if 'pc' in r: r['p'] = r.get('pp', '') + CT[r['pc']]['x'][r['pr'][0]:r['pr'][1]]
    N = [r for r in R if r['t'] == 'nli']; Q = [r for r in R if r['t'] == 'qa' and r.get('q')]; R = N + Q
    say('rows', len(R), 'contexts', len(CT))
    tp, th = toks([r['p'] for r in N]), toks([r['h'] for r in N])
    for r, (p, _), (h, _) in zip(N, tp, th): r['ids'], r['typ'] = fit(p, h[:96]); r['pt'], r['ht'] = p, h
    need = sorted({r['c'] for r in Q} | {k for r in Q for k in r.get('n', [])}); where = {k: i for i, k in enumerate(need)}
    tc = toks([CT[k]['x'] for k in need], True); thd = toks([(CT[k].get('h') or '') + '.' if CT[k].get('h') else '' for k in need])
    ctx = [c for c, _ in tc]; off = [o for _, o in tc]; head = [h[:24] for h, _ in thd]; must = [CT[k].get('m', 0) for k in need]
    qt = toks([r['q'] for r in Q]); sw = toks([x for r in Q for x in r.get('qs', []) + r.get('qh', [])]); at = 0
    for r, (q, _) in zip(Q, qt):
        r['qt'] = q[:48]; r['c'] = where[r['c']]; r['n'] = [where[k] for k in r.get('n', [])]
        k = len(r.get('qs', [])); m = len(r.get('qh', [])); r['qs'] = [x[0][:48] for x in sw[at:at+k]]; r['qh'] = [x[0][:48] for x in sw[at+k:at+k+m]]; at += k + m
        o = off[r['c']]; tok = lambda s, e: [i for i, (x, y) in enumerate(o) if y > s and x < e]
        r['sp'] = None; r['rg'] = None
        if isinstance(r['a'], list):
            z = [tok(s, e) for s, e in r['a']]; z = [(t[0], t[-1]) for t in z if t]
            if z: r['sp'] = z
            else: r['a'] = 'yes'
        if r.get('reg'):
            z = [tok(s, e) for s, e in r['reg']]; z = [(t[0], t[-1]) for t in z if t]; r['rg'] = z or None
        for f in ('ds', 'as'):
            if f in r: t = tok(*r[f]); r[f] = (t[0], t[-1]) if t else None
    say('tokenised', len(N), 'nli,', len(Q), 'qa,', len(sw), 'swapped questions')
    # hard negatives: other passages nearest in weighted words to the question
    D = 4096
    def bow(lists, idf=None):
        M = np.zeros((len(lists), D), np.float32)
        for i, t in enumerate(lists):
            u = np.unique(t); np.add.at(M[i], (u.astype(np.int64)*2654435761 % 2**32) % D, 1. if idf is None else idf[u])
        return torch.from_numpy(M)
    df = np.zeros(30522)
    for t in ctx: df[np.unique(t)] += 1
    idf = np.log((len(ctx)+1)/(df+1)).astype(np.float32)
    Cb = F.normalize(bow(ctx, idf).to(dev), dim=1) * torch.tensor([min(1., (len(t)/64)**.5) for t in ctx], device=dev)[:, None]; low = [CT[k]['x'].lower() for k in need]
    for i in range(0, len(Q), 2048):
        q = F.normalize(bow([r['qt'] for r in Q[i:i+2048]], idf).to(dev), dim=1)
        sim = q @ Cb.T; top = sim.topk(min(12, len(ctx)), dim=1).indices.cpu().numpy()
        for k, r in enumerate(Q[i:i+2048]):
            n = [int(j) for j in top[k] if j != r['c']]
            if r['sp']:                          # none that has the answer's words, too
                x = CT[need[r['c']]]['x']; an = [x[s:e].lower() for s, e in r['a'][:2]]
                n = [j for j in n if not any(a in low[j] for a in an)]; r['neg'] = n[:8]
            else: r['neg'] = n[1:9]
    del Cb, low
    say('negatives found among', len(ctx), 'passages')
    DROP = {tk.token_to_id(w) for w in ('the', 'a', 'an')}; DROP2 = DROP | {tk.token_to_id(w) for w in ('is', 'was', 'are', 'were', 'be', 'been', 'has', 'have', 'of', 'that')}
    DASH, BAR, COL = tk.token_to_id('-'), tk.token_to_id('|'), tk.token_to_id(':')
    heads = [h for h in head if len(h)]
    def item(q, c, withhead, keep=None, marks=(), aug=False, hd=None, cap=0):
        """[CLS] q [SEP] head. passage [SEP]; keep: list of token positions kept, in order; marks: (s, e) spans in the passage.
        -> ids, typ, marks as places in ids (None where cut off)"""
        t = ctx[c]; pos = np.arange(len(t)) if keep is None else np.asarray(keep)
        if aug and len(pos) and random.random() < .2:                     # short notes: little words left out
            dr = DROP if random.random() < .5 else DROP2; prot = set()
            for s, e in marks: prot.update(range(s, e+1))
            k2 = [i for i in pos if t[i] not in dr or i in prot]
            if len(k2) > 4: pos = np.array(k2)
        h = (hd if hd is not None else head[c]) if withhead else head[c][:0]
        lead = np.array([], np.int32)
        if aug and random.random() < .1: lead = np.array([random.choice((DASH, BAR, DASH))], np.int32)
        size = (min(cap, A.maxlen) if cap else A.maxlen) - 3 - len(q) - len(h) - len(lead); w = 0
        size = max(size, 16)
        inv = {int(p): i for i, p in enumerate(pos)}
        mk = [(inv.get(s), inv.get(e)) for s, e in marks]
        if len(pos) > size:
            good = [m for m in mk if m[0] is not None]
            if good: w = max(0, min(good[0][0] - random.randint(size//8, size*7//8), len(pos) - size))
            else: w = random.randint(0, len(pos) - size)
        pos = pos[w:w+size]; o = len(q) + 2 + len(h) + len(lead)
        ids = np.concatenate([[CLS], q, [SEP], h, lead, t[pos], [SEP]]).astype(np.int64); typ = np.zeros(len(ids), np.int64); typ[len(q)+2:] = 1
        res = []
        for a, b in mk:
            if a is None or b is None or a < w or b >= w + len(pos): res.append(None)
            else: res.append((a - w + o, b - w + o))
        return ids, typ, res
    usehead = lambda c: len(head[c]) > 0 and (must[c] or random.random() < A.headp)
    held = []
    for r in R:
        if not r['d']: continue
        if r['t'] == 'nli': held.append(r); continue
        i, t, _ = item(r['qt'], r['c'], must[r['c']]); held.append(dict(r, ids=i, typ=t))
        n = r['n'] or r['neg']
        if r['a'] is not None and n: i, t, _ = item(r['qt'], n[0], must[n[0]]); held.append(dict(r, ids=i, typ=t, a=None))
    train = [r for r in R if not r['d']]
    ev = Evals()
    if (dev == 'cuda' or A.evlimit) and A.every: show(ev.run(net, held), 'before training' + (' (warm)' if A.warmfile else ' (heads are random)'))

    # ------------------------------------------------------------ train
    if A.freeze: net.tok.weight.requires_grad_(False)
    dec = [p for n, p in net.named_parameters() if p.requires_grad and p.dim() == 2]; nod = [p for n, p in net.named_parameters() if p.requires_grad and p.dim() != 2]
    opt = torch.optim.AdamW([{'params': dec, 'weight_decay': .01}, {'params': nod, 'weight_decay': 0.}], lr=A.lr, betas=(.9, .98), eps=1e-6, fused=dev == 'cuda')
    ema = {n: p.detach().clone().float() for n, p in net.named_parameters() if p.requires_grad}
    weight = {'snli': .5, 'boolq': .35, 'multirc': .4, 'conjnli': .4, 'tweetqa': .4, 'subjqa': .3, 'zre': .6, 'lingnli': .5, 'cad': .6, 'paws': .5, 'padded': .7, 'privacy': .5, 'dart': .6, 'notes': .9,
              'squad2': 1.5, 'squad2dev': 2., 'squad1x': 1.5, 'quac': 1., 'narrative': .8, 'covidqa': .6, 'covidqa2': 1., 'clapnq': 3., 'mtrag': 2., 'ab': 2.5, 'wice': 3., 'feversym': 2., 'healthver': 1.2, 'climate': .8, 'scifact': 1.5, 'scifact-abs': 1.2, 'qanli': .8, 'ordinary': A.own, 'claims': A.own, 'decides': A.own/2}
    def times(r):
        w = weight.get(r['s'], 1.); return int(w) + (random.random() < w - int(w))
    G = 4
    def single(q, c, wh, aug, kind, marks=(), keep=None, rel=-1., hd=None, cap=0):
        """kind 0 none, 1 spans, 2 region, 3 somewhere -> (ids, typ, kind, starts, ends, rel)"""
        i, t, m = item(q, c, wh, keep, marks, aug, hd, cap); m = [x for x in m if x]
        if kind in (1, 2) and not m: kind = 3 if not marks else -1      # cut off: only the group's other parts learn
        return i, t, kind, m, rel
    def positive(r, wh, aug):
        if r['sp']:
            keep = None
            if aug and ('ds' in r or 'as' in r) and random.random() < .2:   # the answering sentence alone, or with its neighbour
                z = r.get('ds') or r.get('as')
                if z: n = random.choice((0, 0, 25, 60)); keep = list(range(max(0, z[0]-n), min(len(ctx[r['c']]), z[1]+1+random.choice((0, n)))))
            return single(r['qt'], r['c'], wh, aug, 1, r['sp'], keep, 1.)
        if r['rg']: return single(r['qt'], r['c'], wh, False, 2, r['rg'], None, 1.)
        return single(r['qt'], r['c'], wh, aug, 3, (), None, 1.)
    def negative(r, used, cap=0):
        """a passage that does not hold the answer"""
        x = random.random()
        if r.get('ds') and x < .35 and 'drop' not in used:
            used.add('drop'); z = r['ds']; n = len(ctx[r['c']])
            keep = list(range(0, z[0])) + list(range(z[1]+1, n))
            if random.random() < .3 and z[0] > 25: keep = list(range(0, z[0]))
            if len(keep) >= 12: return single(r['qt'], r['c'], usehead(r['c']), True, 0, (), keep, -1., cap=cap)
        p_ = [k for k in (r['n'] if r['n'] and random.random() < .7 else r['neg']) if k not in used] or r['neg'] or r['n']
        k = random.choice(p_); used.add(k)
        return single(r['qt'], k, usehead(k), True, 0, (), None, 0., cap=cap)
    def nearmiss(r, wh):
        c = r['c']; x = random.random()
        if r['qh'] and (x < .6 or not r['qs']) and len(head[c]): return single(random.choice(r['qh']), c, True, True, 0)
        if r['qs']: return single(random.choice(r['qs']), c, wh, True, 0)
        if r['qh'] == [] and must[c] and len(heads) > 9 and x < .5: return single(r['qt'], c, True, True, 0, hd=random.choice(heads))
        return None
    kin = sorted((r for r in train if r['t'] == 'nli'), key=lambda r: r['p']); place = {id(r): i for i, r in enumerate(kin)}
    def other(t, more):
        """a text with words taken out or exchanged for those of another: what it says now, the teachers know"""
        t = t.copy()
        for _ in range(random.choice((1, 1, 2, 3))):
            k = random.randrange(max(1, len(t)))
            if random.random() < .3 and len(t) > 5: t = np.delete(t, slice(k, k + random.choice((1, 1, 2, 3))))
            elif len(t) and len(more): t[min(k, len(t)-1)] = random.choice(more)
        return t
    def freeclaim(r):
        p, h = r['pt'], r['ht']; x = random.random(); r2 = kin[(place[id(r)] + random.choice((-2, -1, 1, 2))) % len(kin)]
        if x < .3: h = r2['ht']
        elif x < .4 and len(p) < 96: p, h = h, p
        else: h = other(h, random.choice((p, p, r2['ht'])))
        return fit(p, h[:96])
    def freeask(r):
        c = r['c'] if random.random() < .7 or not r['neg'] else random.choice(r['neg']); q = random.choice(r['qs'] + r['qh'] + [r['qt']])
        return single(other(q, random.choice((ctx[c], r['qt']))), c, usehead(c), True, -1)
    def units():
        out = []
        for r in train:
            for _ in range(times(r)):
                if A.teachers and random.random() < A.free: out.append(('free' if r['t'] == 'qa' else 'nlif', r))
                if r['t'] == 'nli': out.append(('nli', r)); continue
                if r['a'] is None or not r['neg']: out.append(('one', r)); continue
                out.append(('grp', r) if A.group and (r['sp'] or r['rg'] or random.random() < .4) else ('one', r))
                if not A.group and random.random() < .8: out.append(('neg', r))
                if not A.group and (r['qs'] or r['qh']) and random.random() < .6: out.append(('miss', r))
        random.shuffle(out); return out
    def length(u):
        k, r = u
        if k in ('nli', 'nlif'): return len(r['ids'])
        n = min(A.maxlen, len(r['qt']) + len(ctx[r['c']]) + 8)
        return max(n, 64) if k == 'grp' else max(n, 150) if k == 'neg' else n
    kd = lambda u: {'nli': 'nli', 'nlif': 'nli', 'grp': 'grp'}.get(u[0], 'one')
    def epoch():
        L = units(); out = []
        for c in range(0, len(L), 16000):
            ch = sorted(L[c:c+16000], key=lambda u: (kd(u), length(u))); i = 0; bs = []
            while i < len(ch):
                j, m, g = i, 0, G if ch[i][0] == 'grp' else 1
                while j < len(ch) and kd(ch[j]) == kd(ch[i]) and j - i < 384//g:
                    m = max(m, length(ch[j]))
                    if m*(j-i+1)*g > A.tokens: break
                    j += 1
                j = max(j, i+1); bs.append(ch[i:j]); i = j
            random.shuffle(bs); out += bs
        return out
    def build(b):
        """all the work without the GPU"""
        if kd(b[0]) == 'nli':
            ids, typ, n = host([(r['ids'], r['typ']) if k == 'nli' else freeclaim(r) for k, r in b]); return 'nli', ids, typ, n, torch.tensor([r['y'] if k == 'nli' else -1 for k, r in b])
        its = []; grp = b[0][0] == 'grp'; miss = []
        for what, r in b:
            if not grp:
                if what == 'free': its.append(freeask(r)); continue
                if what == 'neg': its.append(negative(r, set())); continue
                if what == 'miss': its.append(nearmiss(r, usehead(r['c'])) or negative(r, set())); continue
                wh = usehead(r['c']); its.append(positive(r, wh, True) if r['a'] is not None else single(r['qt'], r['c'], wh, True, 0)); continue
            wh = usehead(r['c']) or (bool(r['qh']) and random.random() < .5); used = {r['c']}
            its.append(positive(r, wh, True)); cap = max(64, len(its[-1][0]) + 8)      # rivals no longer than the passage: no hint in the length
            its.append(negative(r, used, cap)); its.append(negative(r, used, cap))
            x = nearmiss(r, wh) if random.random() < .85 else None; miss.append(x is not None); its.append(x or negative(r, used, cap))
        ids, typ, n = host([(x[0], x[1]) for x in its]); B, L = ids.shape
        S = torch.zeros(B, L, dtype=torch.bool); E = torch.zeros(B, L, dtype=torch.bool); kind = torch.tensor([x[2] for x in its]); rel = torch.tensor([x[4] for x in its])
        for k, (_, t, of, m, _) in enumerate(its):
            if of == 0: S[k, 0] = E[k, 0] = True
            elif of == 1:
                for a, e in m: S[k, a] = True; E[k, e] = True
            elif of == 2:
                for a, e in m: S[k, a:e+1] = True; E[k, a:e+1] = True
            else: S[k] = E[k] = typ[k] == 1
        return 'grp' if grp else 'one', ids, typ, n, S, E, kind, rel, torch.tensor(miss or [False])
    def soften(what, ids, typ, n, said):
        """how far from what the teachers say, on the average"""
        nl, an, rl, sp = said; like = []
        with torch.no_grad(), amp(): T = [t(ids, typ, n) for t in teachers]
        mean = lambda f: torch.stack([f(t) for t in T]).mean(0)
        if what == 'nli': return -(mean(lambda t: t[0].softmax(-1)) * nl.log_softmax(-1)).sum(-1).mean()
        l = F.binary_cross_entropy_with_logits(an, mean(lambda t: t[1].sigmoid())) + .3*F.binary_cross_entropy_with_logits(rl, mean(lambda t: t[2].sigmoid()))
        for k in (0, 1): l = l - .5*(mean(lambda t: t[3][..., k].softmax(-1)) * sp[..., k].log_softmax(-1)).sum(-1).mean()
        if what == 'grp':
            for k, x in ((1, an), (2, rl)): l = l - A.listw*(mean(lambda t: t[k].view(-1, G).softmax(-1)) * x.view(-1, G).log_softmax(-1)).sum(-1).mean()
        return A.qaw*l
    def loss_of(b):
        b = [x.to(dev, non_blocking=True) if torch.is_tensor(x) else x for x in b]
        with amp(): said = net(*b[1:4])
        l = hard_of(b, *said)
        return (1-A.soft)*l + A.soft*soften(*b[:4], said) if teachers else l
    def hard_of(b, nl, an, rl, sp):
        what, ids, typ, n = b[:4]
        if what == 'nli':
            y = b[4]; lp = nl.log_softmax(-1); ok = y >= 0
            hard = F.cross_entropy(nl, y.clamp(0, 2), reduction='none', label_smoothing=.05)
            return (torch.where(y == 3, -torch.logsumexp(lp[:, 1:], -1), hard)*ok).sum()/ok.sum().clamp(min=1)
        S, E, kind, rel, miss = b[4:]; ok = kind >= 0
        l = (F.binary_cross_entropy_with_logits(an, (kind > 0).float(), reduction='none')*ok).sum()/ok.sum().clamp(min=1)
        ls, le = sp[..., 0].log_softmax(-1), sp[..., 1].log_softmax(-1)
        mass = lambda lp, M: torch.logsumexp(lp.masked_fill(~M, -1e4), -1)
        w = torch.where(kind == 3, .5, torch.where(kind == 2, .7, 1.)) * ok
        l = l + .5*((-mass(ls, S) - mass(le, E)).clamp(max=20)*w).sum()/w.sum().clamp(min=1)
        m = rel >= 0
        if m.any(): l = l + .3*F.binary_cross_entropy_with_logits(rl[m], rel[m])
        if what == 'grp':
            B, L = ids.shape; g = B//G; first = torch.zeros(g, dtype=torch.long, device=dev); pos = kind.view(g, G)[:, 0] > 0
            r3 = rl.view(g, G).clone(); r3[:, 3] = r3[:, 3].masked_fill(miss, -1e4)            # a near miss is still about the matter
            lw = F.cross_entropy(r3, first, reduction='none') + F.cross_entropy(an.view(g, G), first, reduction='none')
            # spans of all four passages against each other
            for lg, M in ((sp[..., 0], S), (sp[..., 1], E)):
                z = lg.masked_fill((typ == 0), -1e4).view(g, G*L); mm = M.clone().view(g, G, L); mm[:, 1:] = False; mm[:, 0, 0] = False
                lw = lw + .5*(torch.logsumexp(z, -1) - torch.logsumexp(z.masked_fill(~mm.view(g, G*L), -1e4), -1)).clamp(max=20)
            l = l + A.listw*(lw*pos).sum()/pos.sum().clamp(min=1)
        return A.qaw*l
    start = time.time(); limit = A.minutes*60; step = 0; total = None; run = collections.defaultdict(list); ep = 0; over = False
    # batches are built by processes of their own: each takes its share of every epoch
    pipe = mp.Queue(64); sizes = mp.Queue()
    def feed(w):
        try:
            torch.set_num_threads(1); ep = 0
            while True:
                random.seed(f'{A.seed} {ep}'); bs = epoch(); random.seed(f'{A.seed} {ep} {w}')
                if w == 0 and ep == 0: sizes.put(len(bs))
                ep += 1
                for b in bs[w::A.feeders]: pipe.put((ep, [x.numpy() if torch.is_tensor(x) else x for x in build(b)]))
        except Exception:
            import traceback; traceback.print_exc(); pipe.put(None)
    crew = [mp.Process(target=feed, args=(w,), daemon=True) for w in range(A.feeders)]
    for c in crew: c.start()
    info = {'n': sizes.get()}; teachers = []
    for files in filter(None, A.teachers.split(',')):
        while not all(map(os.path.exists, files.split('+'))): time.sleep(1)
        time.sleep(2); t = Net(12); load(t, files); teachers.append(t.to(dev).eval())
    while not over:
        b = pipe.get()
        if b is None: say('FEED FAILED'); break
        info['ep'], b = b[0], [torch.from_numpy(x) if not isinstance(x, str) else x for x in b[1]]
        if total is None: total = A.steps or max(1, int(info['n']*A.epochs)); say('batches an epoch', info['n'], 'steps planned', total); start = time.time()
        # the rate follows whichever of steps and clock is further on
        fr = max(step/total, (time.time()-start)/limit)
        if fr >= 1: break
        lr = A.lr*min(1., fr/.06 if fr < .06 else (1-fr)/.94 + .01)
        for g in opt.param_groups: g['lr'] = lr
        net.train(); l = loss_of(b); opt.zero_grad(set_to_none=True); l.backward()
        nn.utils.clip_grad_norm_([p for p in net.parameters() if p.requires_grad], 1.); opt.step()
        if step % 10 == 0:
            d = min(.99, (step+1)/(step+50))
            with torch.no_grad():
                for n, p in net.named_parameters():
                    if p.requires_grad: ema[n].mul_(d).add_(p.float(), alpha=1-d)
        run[b[0]].append(l.detach()); step += 1
        if step % 200 == 0 or step == 5:
            say('step', step, f'of {total} epoch {info.get("ep")} lr {lr:.2e}', ' '.join(f'{k}={torch.stack(v[-100:]).mean().item():.4f}' for k, v in run.items()), f'{step/(time.time()-start):.1f} steps/s ')
            for k in run: run[k] = run[k][-100:]
        if A.every and step % A.every == 0: show(ev.run(net, held), f'step {step}')
    for c in crew: c.kill()
    say('trained', step, 'steps in', round(time.time()-start), 's')
    plain = ev.run(net, held); show(plain, 'last weights')
    keep = {n: p.detach().clone() for n, p in net.named_parameters() if n in ema}
    with torch.no_grad():
        for n, p in net.named_parameters():
            if n in ema: p.copy_(ema[n])
    av = ev.run(net, held); show(av, 'averaged weights')
    g = lambda r, e, k: r.get(e, {}).get(k, np.nan)
    good = lambda r: np.nanmean([g(r, 'ab', 'support_auroc'), g(r, 'wice', 'support_auroc'), g(r, 'feversym', 'contra_auroc'), g(r, 'healthver', 'contra_auroc'), g(r, 'squad', 'auroc_mix'), g(r, 'squad', 'hasans_F1_forced'), g(r, 'clapnq', 'auroc_mix'), g(r, 'held_notes', 'ans_auroc')])
    if good(plain) > good(av):
        say('last weights kept')
        with torch.no_grad():
            for n, p in net.named_parameters():
                if n in keep: p.copy_(keep[n])
        av = plain
    r8 = ev.run(rounded(net), held); show(r8, 'int8 by row')
    meta = {'tag': A.tag, 'args': json.dumps(vars(A)), 'steps': step, 'result': json.dumps(r8), 'labels': 'nli: entailment neutral contradiction'}
    save(net, os.path.join(A.out, A.tag+'-layers.safetensors'), meta, lambda n: n != 'tok.weight')
    if not A.freeze: save(net, os.path.join(A.out, A.tag+'-tokens.safetensors'), meta, lambda n: n == 'tok.weight')
    json.dump({'args': vars(A), 'float': av, 'int8': r8}, open(os.path.join(A.out, A.tag+'-result.json'), 'w'), indent=1)
    say('GOOD', round(float(good(r8)), 4))
main()
