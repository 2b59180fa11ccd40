#!/usr/bin/env python3
"""Writes internal/reader/testdata/reference.json: what the network of train.py says of the texts in
internal/reader/testdata/texts.json, in floats, from the same rounded weights that reader.q8 has.

  python3 tools/reader/reference.py LAYERS.safetensors

Needs torch, numpy, tokenizers, and train.py beside it. Runs in seconds on a processor.
"""
import json, os, sys
import numpy as np

here = os.path.dirname(os.path.abspath(__file__)); root = os.path.join(here, '..', '..')
layers = os.path.abspath(sys.argv[1]); data = os.path.join(root, 'internal', 'reader', 'testdata')
source = open(os.path.join(here, 'train.py')).read(); cut = source.rindex('\nmain()')
sys.argv = ['train.py', '--base', os.path.join(root, 'internal', 'embed', 'minilm'), '--out', '/tmp']
T = {'__name__': 'train'}; exec(compile(source[:cut], 'train.py', 'exec'), T)
net = T['Net'](); T['load'](net, layers); net.eval()
CLS, SEP, WINDOW = T['CLS'], T['SEP'], T['A'].maxlen

def tokens(text): return T['toks']([text], True)[0]
def logits(items):
    import torch
    with torch.no_grad(): return [[x.numpy()[0] for x in net(*T['batch']([i]))] for i in items]
def join(first, second):
    ids = np.concatenate([[CLS], first, [SEP], second, [SEP]]).astype(np.int64); typ = np.zeros(len(ids), np.int64); typ[len(first)+2:] = 1
    return ids, typ

def read(case):
    """a question and a passage, decoded as in Evals.run"""
    q = tokens(case['question'])[0][:48]; h = tokens(case['heading'] + '.')[0][:24] if case['heading'] else np.array([], np.int32)
    t, off = tokens(case['text']); size = WINDOW - 3 - len(q) - len(h); best = None
    ws = T['windows'](t, size, max(32, size//2))
    for w, (_, an, rl, sp) in zip(ws, logits([join(q, np.concatenate([h, t[w:w+size]])) for w in ws])):
        null = sp[0].sum(); lo = 2 + len(q) + len(h); m = len(t[w:w+size]); st, en = sp[lo:lo+m, 0], sp[lo:lo+m, 1]; bs, ba = -1e9, None
        for a in np.argsort(-st)[:20]:
            z = en[a:min(m, a+30)]; c = int(np.argmax(z))
            if st[a] + z[c] > bs: bs, ba = st[a] + z[c], (w+a, w+a+c)
        one = [float(rl), float(an), float(bs - null) if ba else -1e4, ba]
        if best is None: best = one
        else:
            best[0], best[1] = max(best[0], one[0]), max(best[1], one[1])
            if one[2] > best[2]: best[2], best[3] = one[2], one[3]
    span = case['text'][off[best[3][0]][0]:off[best[3][1]][1]] if best[3] else ''
    return dict(case, relevance=round(best[0], 5), answerable=round(best[1], 5), score=round(best[2], 5), span=span, windows=len(ws))

def relate(case):
    c = tokens(case['claim'])[0][:96]; t = tokens(case['evidence'])[0]; size = WINDOW - 3 - len(c); e = k = 0.
    ws = T['windows'](t, size, max(32, size*2//3))
    for nl, *_ in logits([join(t[w:w+size], c) for w in ws]):
        p = np.exp(nl - nl.max()); p /= p.sum(); e, k = max(e, float(p[0])), max(k, float(p[2]))
    return dict(case, entailed=round(e, 5), contradicted=round(k, 5), windows=len(ws))

texts = json.load(open(os.path.join(data, 'texts.json')))
def text(x): return x if isinstance(x, str) else ' '.join(texts['parts'][i] for i in x)     # long texts are lists of parts
out = {'read': [read(dict(c, heading=c.get('heading', ''), text=text(c['text']))) for c in texts['read']],
       'relate': [relate(dict(c, evidence=text(c['evidence']))) for c in texts['relate']]}
with open(os.path.join(data, 'reference.json'), 'w') as f: json.dump(out, f, indent=1, ensure_ascii=False); f.write('\n')
for c in out['read']: print(f"{c['relevance']:8.3f} {c['answerable']:8.3f} {c['score']:8.3f} {c['windows']} {c['question'][:50]!r} -> {c['span'][:60]!r}")
for c in out['relate']: print(f"{c['entailed']:8.3f} {c['contradicted']:8.3f} {c['windows']} {c['claim'][:70]!r}")
