#include "textflag.h"

// As kernel_amd64.s, with sixteen numbers at a time. Nothing here is fused but sums
// of integers, which are exact, and every sum of floats is added up in the order that
// portable.go has. R8 points to the constants.

// The sums of a row of integers with 32 outputs, two inputs at a time.
#define DOT(x, low, high) \
	VPBROADCASTD x, Z26;       \
	VPDPWSSD     Z26, Z24, low; \
	VPDPWSSD     Z26, Z25, high

// The weights of 32 outputs for two inputs, widened, with twelve rows.
#define DOTS12(at) \
	VPMOVSXBW (8*at)(DI), Z24;      \
	VPMOVSXBW (8*at)(R8), Z25;      \
	DOT(at(SI), Z0, Z1);            \
	DOT(at(SI)(DX*1), Z2, Z3);      \
	DOT(at(SI)(DX*2), Z4, Z5);      \
	DOT(at(R9), Z6, Z7);            \
	DOT(at(R9)(DX*1), Z8, Z9);      \
	DOT(at(R9)(DX*2), Z10, Z11);    \
	DOT(at(R10), Z12, Z13);         \
	DOT(at(R10)(DX*1), Z14, Z15);   \
	DOT(at(R10)(DX*2), Z16, Z17);   \
	DOT(at(R13), Z18, Z19);         \
	DOT(at(R13)(DX*1), Z20, Z21);   \
	DOT(at(R13)(DX*2), Z22, Z23)

// A row of 32 sums becomes floats, and the next row is at hand.
#define FINISH(low, high) \
	VBROADCASTSS (CX), Z26;     \
	VCVTDQ2PS low, low;         \
	VCVTDQ2PS high, high;       \
	VMULPS    Z24, low, low;    \
	VMULPS    Z25, high, high;  \
	VMULPS    Z26, low, low;    \
	VMULPS    Z26, high, high;  \
	VADDPS    Z27, low, low;    \
	VADDPS    Z28, high, high;  \
	VMOVUPS   low, (R11);       \
	VMOVUPS   high, 64(R11);    \
	ADDQ      $4, CX;           \
	ADDQ      R12, R11

// Pointers to every third of twelve rows, DX bytes apart.
#define ROWS(second, third, fourth) \
	LEAQ (DX)(DX*2), AX;       \
	LEAQ (SI)(AX*1), second;   \
	LEAQ (SI)(AX*2), third;    \
	LEAQ (second)(AX*2), fourth

#define ZERO(a, b, c, d) \
	VPXORQ a, a, a; \
	VPXORQ b, b, b; \
	VPXORQ c, c, c; \
	VPXORQ d, d, d

// func linear12(x *int16, in int, w *byte, y *float32, out int, scale, bias, steps *float32)
TEXT ·linear12(SB), NOSPLIT, $0-64
	MOVQ x+0(FP), SI
	MOVQ in+8(FP), CX
	MOVQ w+16(FP), DI
	MOVQ y+24(FP), R11
	MOVQ out+32(FP), R12
	MOVQ CX, R8
	SHLQ $4, R8
	ADDQ DI, R8
	MOVQ CX, BX
	SHLQ $5, BX
	LEAQ (CX)(CX*1), DX
	SHLQ $2, R12
	SHRQ $2, CX
	ROWS(R9, R10, R13)
	ZERO(Z0, Z1, Z2, Z3)
	ZERO(Z4, Z5, Z6, Z7)
	ZERO(Z8, Z9, Z10, Z11)
	ZERO(Z12, Z13, Z14, Z15)
	ZERO(Z16, Z17, Z18, Z19)
	ZERO(Z20, Z21, Z22, Z23)

linear12loop:
	PREFETCHT1 (DI)(BX*1) // the weights of the next 32 outputs
	PREFETCHT1 (R8)(BX*1)
	DOTS12(0)
	DOTS12(4)
	ADDQ    $8, SI
	ADDQ    $8, R9
	ADDQ    $8, R10
	ADDQ    $8, R13
	ADDQ    $64, DI
	ADDQ    $64, R8
	DECQ    CX
	JNZ     linear12loop
	MOVQ    scale+40(FP), AX
	MOVQ    bias+48(FP), BX
	MOVQ    steps+56(FP), CX
	VMOVUPS (AX), Z24
	VMOVUPS 64(AX), Z25
	VMOVUPS (BX), Z27
	VMOVUPS 64(BX), Z28
	FINISH(Z0, Z1)
	FINISH(Z2, Z3)
	FINISH(Z4, Z5)
	FINISH(Z6, Z7)
	FINISH(Z8, Z9)
	FINISH(Z10, Z11)
	FINISH(Z12, Z13)
	FINISH(Z14, Z15)
	FINISH(Z16, Z17)
	FINISH(Z18, Z19)
	FINISH(Z20, Z21)
	FINISH(Z22, Z23)
	VZEROUPPER
	RET

// A number of a times 16 of b.
#define TIMES(a, sum) \
	VMULPS.BCST a, Z24, Z25;  \
	VADDPS      Z25, sum, sum

#define STORE(sum) \
	VMOVUPS sum, (R11); \
	ADDQ    R12, R11

// func product12(c *float32, cstride int, a *float32, astride int, b *float32, bstride int, k int)
TEXT ·product12(SB), NOSPLIT, $0-56
	MOVQ c+0(FP), R11
	MOVQ cstride+8(FP), R12
	MOVQ a+16(FP), SI
	MOVQ astride+24(FP), DX
	MOVQ b+32(FP), DI
	MOVQ bstride+40(FP), R8
	MOVQ k+48(FP), CX
	SHLQ $2, R12
	SHLQ $2, DX
	SHLQ $2, R8
	ROWS(R9, R10, R13)
	ZERO(Z0, Z1, Z2, Z3)
	ZERO(Z4, Z5, Z6, Z7)
	ZERO(Z8, Z9, Z10, Z11)

product12loop:
	VMOVUPS (DI), Z24
	TIMES((SI), Z0)
	TIMES((SI)(DX*1), Z1)
	TIMES((SI)(DX*2), Z2)
	TIMES((R9), Z3)
	TIMES((R9)(DX*1), Z4)
	TIMES((R9)(DX*2), Z5)
	TIMES((R10), Z6)
	TIMES((R10)(DX*1), Z7)
	TIMES((R10)(DX*2), Z8)
	TIMES((R13), Z9)
	TIMES((R13)(DX*1), Z10)
	TIMES((R13)(DX*2), Z11)
	ADDQ    $4, SI
	ADDQ    $4, R9
	ADDQ    $4, R10
	ADDQ    $4, R13
	ADDQ    R8, DI
	DECQ    CX
	JNZ     product12loop
	STORE(Z0)
	STORE(Z1)
	STORE(Z2)
	STORE(Z3)
	STORE(Z4)
	STORE(Z5)
	STORE(Z6)
	STORE(Z7)
	STORE(Z8)
	STORE(Z9)
	STORE(Z10)
	STORE(Z11)
	VZEROUPPER
	RET

// x = exp(x), for x ≤ 0; n and p are overwritten.
#define EXP(x, n, p) \
	VMAXPS.BCST 0(R8), x, x;    \
	VMULPS.BCST 32(R8), x, n;   \
	VRNDSCALEPS $8, n, n;       \
	VMULPS.BCST 64(R8), n, p;   \
	VSUBPS      p, x, x;        \
	VMULPS.BCST 96(R8), n, p;   \
	VSUBPS      p, x, x;        \
	VMULPS.BCST 128(R8), x, p;  \
	VADDPS.BCST 160(R8), p, p;  \
	VMULPS      x, p, p;        \
	VADDPS.BCST 192(R8), p, p;  \
	VMULPS      x, p, p;        \
	VADDPS.BCST 224(R8), p, p;  \
	VMULPS      x, p, p;        \
	VADDPS.BCST 256(R8), p, p;  \
	VMULPS      x, p, p;        \
	VADDPS.BCST 288(R8), p, p;  \
	VMULPS      x, p, p;        \
	VADDPS.BCST 320(R8), p, p;  \
	VMULPS      x, p, p;        \
	VADDPS.BCST 320(R8), p, p;  \
	VCVTPS2DQ   n, n;           \
	VPADDD.BCST 352(R8), n, n;  \
	VPSLLD      $23, n, n;      \
	VMULPS      n, p, x

// func expSums16(x *float32, n int, top, scale float32, c *constants) float32
TEXT ·expSums16(SB), NOSPLIT, $0-36
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS top+16(FP), Z8
	VBROADCASTSS scale+20(FP), Z9
	MOVQ         c+24(FP), R8
	VXORPS       Y10, Y10, Y10

expSums16Loop:
	VMOVUPS       (SI), Z0
	VSUBPS        Z8, Z0, Z0
	VMULPS        Z9, Z0, Z0
	EXP(Z0, Z1, Z2)
	VMOVUPS       Z0, (SI)
	VADDPS        Y0, Y10, Y10
	VEXTRACTF64X4 $1, Z0, Y3
	VADDPS        Y3, Y10, Y10
	ADDQ          $64, SI
	SUBQ          $16, CX
	JNZ           expSums16Loop
	VEXTRACTF128  $1, Y10, X15
	VADDPS        X15, X10, X10
	VMOVHLPS      X10, X10, X15
	VADDPS        X15, X10, X10
	VMOVSHDUP     X10, X15
	VADDPS        X15, X10, X10
	VMOVSS        X10, ret+32(FP)
	VZEROUPPER
	RET

// func gelus16(x *float32, n int, c *constants)
TEXT ·gelus16(SB), NOSPLIT, $0-24
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	MOVQ         c+16(FP), R8
	VPXORQ       Z8, Z8, Z8
	VBROADCASTSS 320(R8), Z9

gelus16Loop:
	VMOVUPS     (SI), Z0
	VPANDD.BCST 608(R8), Z0, Z1
	VMULPS.BCST 384(R8), Z1, Z2
	VADDPS      Z9, Z2, Z2
	VDIVPS      Z2, Z9, Z2
	VMULPS.BCST 416(R8), Z2, Z3
	VADDPS.BCST 448(R8), Z3, Z3
	VMULPS      Z2, Z3, Z3
	VADDPS.BCST 480(R8), Z3, Z3
	VMULPS      Z2, Z3, Z3
	VADDPS.BCST 512(R8), Z3, Z3
	VMULPS      Z2, Z3, Z3
	VADDPS.BCST 544(R8), Z3, Z3
	VMULPS      Z2, Z3, Z3
	VMULPS      Z1, Z1, Z4
	VMULPS.BCST 576(R8), Z4, Z4
	EXP(Z4, Z5, Z6)
	VMULPS      Z4, Z3, Z3
	VMULPS      Z3, Z1, Z1
	VMAXPS      Z8, Z0, Z0
	VSUBPS      Z1, Z0, Z0
	VMOVUPS     Z0, (SI)
	ADDQ        $64, SI
	SUBQ        $16, CX
	JNZ         gelus16Loop
	VZEROUPPER
	RET
