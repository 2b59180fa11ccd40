#!/usr/bin/env python3
"""Turns a BERT of 12 layers in an ONNX file into the weights that train.py begins a teacher with.

  python3 tools/reader/teacher.py MODEL.onnx TEACHER.safetensors

Needs onnx, numpy.
"""
import json, struct, sys
import numpy as np, onnx
from onnx import numpy_helper

graph = onnx.load(sys.argv[1]).graph
named = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
product = iter([named[n.input[1]].T for n in graph.node if n.op_type == 'MatMul' and n.input[1] in named])      # in the order of the layers: q, k, v, out, up, down
out = {'tok.weight': named['embeddings.word_embeddings.weight'], 'pos.weight': named['embeddings.position_embeddings.weight'], 'typ.weight': named['embeddings.token_type_embeddings.weight'],
       'n0.weight': named['embeddings.LayerNorm.weight'], 'n0.bias': named['embeddings.LayerNorm.bias']}
for k in range(12):
    theirs, ours = f'encoder.layer.{k}.', f'layers.{k}.'
    q, kk, v, o, up, down = (next(product) for _ in range(6))
    out[ours+'qkv.weight'] = np.concatenate([q, kk, v]); out[ours+'qkv.bias'] = np.concatenate([named[theirs+f'attention.self.{n}.bias'] for n in ('query', 'key', 'value')])
    for name, m, b in (('out', o, 'attention.output.dense'), ('up', up, 'intermediate.dense'), ('down', down, 'output.dense')): out[ours+name+'.weight'], out[ours+name+'.bias'] = m, named[theirs+b+'.bias']
    for name, b in (('n1', 'attention.output.LayerNorm'), ('n2', 'output.LayerNorm')): out[ours+name+'.weight'], out[ours+name+'.bias'] = named[theirs+b+'.weight'], named[theirs+b+'.bias']
head, blob, at = {}, [], 0
def put(name, a, kind):
    global at
    b = np.ascontiguousarray(a).tobytes(); head[name] = {'dtype': kind, 'shape': list(a.shape), 'data_offsets': [at, at+len(b)]}; blob.append(b); at += len(b)
for name, a in out.items():
    if a.ndim == 2 and name != 'typ.weight':
        s = np.abs(a).max(1).clip(1e-12) / 127; put(name, np.round(a / s[:, None]).astype(np.int8), 'I8'); put(name+'.scale', s.astype(np.float32), 'F32')
    else: put(name, a.astype(np.float32), 'F32')
h = json.dumps(head).encode(); h += b' ' * (-len(h) % 8)
with open(sys.argv[2], 'wb') as f: f.write(struct.pack('<Q', len(h)) + h + b''.join(blob))
