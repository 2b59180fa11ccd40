#include "textflag.h"

// Nothing here is fused, and every sum of floats is added up in the order that
// portable.go has. R8 points to the constants, each eight times (see kernel_amd64.go).

// The sums of a row of integers with 16 outputs, two inputs at a time.
#define DOT(x, low, high) \
	VPBROADCASTD x, Y14;      \
	VPMADDWD Y14, Y12, Y15;   \
	VPADDD   Y15, low, low;   \
	VPMADDWD Y14, Y13, Y14;   \
	VPADDD   Y14, high, high

// The weights of 16 outputs for two inputs, widened.
#define WEIGHTS(at) \
	VPMOVSXBW at(DI), Y12;    \
	VPMOVSXBW (at+16)(DI), Y13

#define DOTS6(at) \
	WEIGHTS((8*at));                \
	DOT(at(SI), Y0, Y1);            \
	DOT(at(SI)(DX*1), Y2, Y3);      \
	DOT(at(SI)(DX*2), Y4, Y5);      \
	DOT(at(R9), Y6, Y7);            \
	DOT(at(R9)(DX*1), Y8, Y9);      \
	DOT(at(R9)(DX*2), Y10, Y11)

#define DOTS2(at) \
	WEIGHTS((8*at));                \
	DOT(at(SI), Y0, Y1);            \
	DOT(at(SI)(DX*1), Y2, Y3)

// A row of 16 sums becomes floats, and the next row is at hand.
#define FINISH(low, high) \
	VBROADCASTSS (R10), Y14;  \
	VCVTDQ2PS low, low;       \
	VCVTDQ2PS high, high;     \
	VMULPS    Y12, low, low;  \
	VMULPS    Y13, high, high; \
	VMULPS    Y14, low, low;  \
	VMULPS    Y14, high, high; \
	VADDPS    (BX), low, low; \
	VADDPS    32(BX), high, high; \
	VMOVUPS   low, (R11);     \
	VMOVUPS   high, 32(R11);  \
	ADDQ      $4, R10;        \
	ADDQ      R12, R11

#define LINEARARGS \
	MOVQ x+0(FP), SI;       \
	MOVQ in+8(FP), CX;      \
	MOVQ w+16(FP), DI;      \
	MOVQ y+24(FP), R11;     \
	MOVQ out+32(FP), R12;   \
	MOVQ scale+40(FP), AX;  \
	MOVQ bias+48(FP), BX;   \
	MOVQ steps+56(FP), R10; \
	LEAQ (CX)(CX*1), DX;    \
	SHLQ $2, R12;           \
	SHRQ $2, CX

#define PRODUCTARGS \
	MOVQ c+0(FP), R11;      \
	MOVQ cstride+8(FP), R12; \
	MOVQ a+16(FP), SI;      \
	MOVQ astride+24(FP), DX; \
	MOVQ b+32(FP), DI;      \
	MOVQ bstride+40(FP), R13; \
	MOVQ k+48(FP), CX;      \
	SHLQ $2, R12;           \
	SHLQ $2, DX;            \
	SHLQ $2, R13

// func linear6(x *int16, in int, w *byte, y *float32, out int, scale, bias, steps *float32)
TEXT ·linear6(SB), NOSPLIT, $0-64
	LINEARARGS
	LEAQ  (SI)(DX*2), R9
	ADDQ  DX, R9
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7
	VPXOR Y8, Y8, Y8
	VPXOR Y9, Y9, Y9
	VPXOR Y10, Y10, Y10
	VPXOR Y11, Y11, Y11

linear6loop:
	DOTS6(0)
	DOTS6(4)
	ADDQ    $8, SI
	ADDQ    $8, R9
	ADDQ    $64, DI
	DECQ    CX
	JNZ     linear6loop
	VMOVUPS (AX), Y12
	VMOVUPS 32(AX), Y13
	FINISH(Y0, Y1)
	FINISH(Y2, Y3)
	FINISH(Y4, Y5)
	FINISH(Y6, Y7)
	FINISH(Y8, Y9)
	FINISH(Y10, Y11)
	VZEROUPPER
	RET

// func linear2(x *int16, in int, w *byte, y *float32, out int, scale, bias, steps *float32)
TEXT ·linear2(SB), NOSPLIT, $0-64
	LINEARARGS
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3

linear2loop:
	DOTS2(0)
	DOTS2(4)
	ADDQ    $8, SI
	ADDQ    $64, DI
	DECQ    CX
	JNZ     linear2loop
	VMOVUPS (AX), Y12
	VMOVUPS 32(AX), Y13
	FINISH(Y0, Y1)
	FINISH(Y2, Y3)
	VZEROUPPER
	RET

// A number of a times 16 of b.
#define TIMES(a, low, high) \
	VBROADCASTSS a, Y14;      \
	VMULPS Y14, Y12, Y15;     \
	VADDPS Y15, low, low;     \
	VMULPS Y14, Y13, Y14;     \
	VADDPS Y14, high, high

#define STORE(low, high) \
	VMOVUPS low, (R11);       \
	VMOVUPS high, 32(R11);    \
	ADDQ    R12, R11

// func product6(c *float32, cstride int, a *float32, astride int, b *float32, bstride int, k int)
TEXT ·product6(SB), NOSPLIT, $0-56
	PRODUCTARGS
	LEAQ   (SI)(DX*2), R9
	ADDQ   DX, R9
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS Y10, Y10, Y10
	VXORPS Y11, Y11, Y11

product6loop:
	VMOVUPS (DI), Y12
	VMOVUPS 32(DI), Y13
	TIMES((SI), Y0, Y1)
	TIMES((SI)(DX*1), Y2, Y3)
	TIMES((SI)(DX*2), Y4, Y5)
	TIMES((R9), Y6, Y7)
	TIMES((R9)(DX*1), Y8, Y9)
	TIMES((R9)(DX*2), Y10, Y11)
	ADDQ    $4, SI
	ADDQ    $4, R9
	ADDQ    R13, DI
	DECQ    CX
	JNZ     product6loop
	STORE(Y0, Y1)
	STORE(Y2, Y3)
	STORE(Y4, Y5)
	STORE(Y6, Y7)
	STORE(Y8, Y9)
	STORE(Y10, Y11)
	VZEROUPPER
	RET

// func product2(c *float32, cstride int, a *float32, astride int, b *float32, bstride int, k int)
TEXT ·product2(SB), NOSPLIT, $0-56
	PRODUCTARGS
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

product2loop:
	VMOVUPS (DI), Y12
	VMOVUPS 32(DI), Y13
	TIMES((SI), Y0, Y1)
	TIMES((SI)(DX*1), Y2, Y3)
	ADDQ    $4, SI
	ADDQ    R13, DI
	DECQ    CX
	JNZ     product2loop
	STORE(Y0, Y1)
	STORE(Y2, Y3)
	VZEROUPPER
	RET

// Halves a register three times by an operation and leaves the result in lane 0.
#define HALVE(op, y, x) \
	VEXTRACTF128 $1, y, X15;      \
	op           X15, x, x;       \
	VMOVHLPS     x, x, X15;       \
	op           X15, x, x;       \
	VMOVSHDUP    x, X15;          \
	op           X15, x, x

// func absMax(x *float32, n int, c *constants) float32
TEXT ·absMax(SB), NOSPLIT, $0-28
	MOVQ    x+0(FP), SI
	MOVQ    n+8(FP), CX
	MOVQ    c+16(FP), R8
	VMOVUPS 608(R8), Y2
	VXORPS  Y0, Y0, Y0

absMaxLoop:
	VANDPS (SI), Y2, Y1
	VMAXPS Y1, Y0, Y0
	ADDQ   $32, SI
	SUBQ   $8, CX
	JNZ    absMaxLoop
	HALVE(VMAXPS, Y0, X0)
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// func round(dst *int16, x *float32, n int, factor float32)
TEXT ·round(SB), NOSPLIT, $0-28
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS factor+24(FP), Y2

roundLoop:
	VMULPS    (SI), Y2, Y0
	VMULPS    32(SI), Y2, Y1
	VCVTPS2DQ Y0, Y0
	VCVTPS2DQ Y1, Y1
	VPACKSSDW Y1, Y0, Y0
	VPERMQ    $0xD8, Y0, Y0
	VMOVDQU   Y0, (DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $16, CX
	JNZ       roundLoop
	VZEROUPPER
	RET

// func maximum(x *float32, n int) float32
TEXT ·maximum(SB), NOSPLIT, $0-20
	MOVQ    x+0(FP), SI
	MOVQ    n+8(FP), CX
	VMOVUPS (SI), Y0

maximumLoop:
	VMAXPS (SI), Y0, Y0
	ADDQ   $32, SI
	SUBQ   $8, CX
	JNZ    maximumLoop
	HALVE(VMAXPS, Y0, X0)
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// x = exp(x), for x ≤ 0; n and p are overwritten.
#define EXP(x, n, p) \
	VMAXPS    0(R8), x, x;    \
	VMULPS    32(R8), x, n;   \
	VROUNDPS  $8, n, n;       \
	VMULPS    64(R8), n, p;   \
	VSUBPS    p, x, x;        \
	VMULPS    96(R8), n, p;   \
	VSUBPS    p, x, x;        \
	VMULPS    128(R8), x, p;  \
	VADDPS    160(R8), p, p;  \
	VMULPS    x, p, p;        \
	VADDPS    192(R8), p, p;  \
	VMULPS    x, p, p;        \
	VADDPS    224(R8), p, p;  \
	VMULPS    x, p, p;        \
	VADDPS    256(R8), p, p;  \
	VMULPS    x, p, p;        \
	VADDPS    288(R8), p, p;  \
	VMULPS    x, p, p;        \
	VADDPS    320(R8), p, p;  \
	VMULPS    x, p, p;        \
	VADDPS    320(R8), p, p;  \
	VCVTPS2DQ n, n;           \
	VPADDD    352(R8), n, n;  \
	VPSLLD    $23, n, n;      \
	VMULPS    n, p, x

// func expSums(x *float32, n int, top, scale float32, c *constants) float32
TEXT ·expSums(SB), NOSPLIT, $0-36
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS top+16(FP), Y8
	VBROADCASTSS scale+20(FP), Y9
	MOVQ         c+24(FP), R8
	VXORPS       Y10, Y10, Y10

expSumsLoop:
	VMOVUPS (SI), Y0
	VSUBPS  Y8, Y0, Y0
	VMULPS  Y9, Y0, Y0
	EXP(Y0, Y1, Y2)
	VMOVUPS Y0, (SI)
	VADDPS  Y0, Y10, Y10
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     expSumsLoop
	HALVE(VADDPS, Y10, X10)
	VMOVSS  X10, ret+32(FP)
	VZEROUPPER
	RET

// func gelus(x *float32, n int, c *constants)
TEXT ·gelus(SB), NOSPLIT, $0-24
	MOVQ   x+0(FP), SI
	MOVQ   n+8(FP), CX
	MOVQ   c+16(FP), R8
	VXORPS Y8, Y8, Y8

gelusLoop:
	VMOVUPS (SI), Y0
	VANDPS  608(R8), Y0, Y1
	VMULPS  384(R8), Y1, Y2
	VADDPS  320(R8), Y2, Y2
	VMOVUPS 320(R8), Y3
	VDIVPS  Y2, Y3, Y2
	VMULPS  416(R8), Y2, Y3
	VADDPS  448(R8), Y3, Y3
	VMULPS  Y2, Y3, Y3
	VADDPS  480(R8), Y3, Y3
	VMULPS  Y2, Y3, Y3
	VADDPS  512(R8), Y3, Y3
	VMULPS  Y2, Y3, Y3
	VADDPS  544(R8), Y3, Y3
	VMULPS  Y2, Y3, Y3
	VMULPS  Y1, Y1, Y4
	VMULPS  576(R8), Y4, Y4
	EXP(Y4, Y5, Y6)
	VMULPS  Y4, Y3, Y3
	VMULPS  Y3, Y1, Y1
	VMAXPS  Y8, Y0, Y0
	VSUBPS  Y1, Y0, Y0
	VMOVUPS Y0, (SI)
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     gelusLoop
	VZEROUPPER
	RET

// func add(x, y *float32, n int) float32
TEXT ·add(SB), NOSPLIT, $0-28
	MOVQ   x+0(FP), SI
	MOVQ   y+8(FP), DI
	MOVQ   n+16(FP), CX
	VXORPS Y1, Y1, Y1

addLoop:
	VMOVUPS (SI), Y0
	VADDPS  (DI), Y0, Y0
	VMOVUPS Y0, (SI)
	VADDPS  Y0, Y1, Y1
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     addLoop
	HALVE(VADDPS, Y1, X1)
	VMOVSS  X1, ret+24(FP)
	VZEROUPPER
	RET

// func centre(x *float32, n int, mean float32) float32
TEXT ·centre(SB), NOSPLIT, $0-28
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS mean+16(FP), Y2
	VXORPS       Y1, Y1, Y1

centreLoop:
	VMOVUPS (SI), Y0
	VSUBPS  Y2, Y0, Y0
	VMOVUPS Y0, (SI)
	VMULPS  Y0, Y0, Y0
	VADDPS  Y0, Y1, Y1
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     centreLoop
	HALVE(VADDPS, Y1, X1)
	VMOVSS  X1, ret+24(FP)
	VZEROUPPER
	RET

// func stretch(x *float32, n int, factor float32, gain, shift *float32)
TEXT ·stretch(SB), NOSPLIT, $0-40
	MOVQ         x+0(FP), SI
	MOVQ         n+8(FP), CX
	VBROADCASTSS factor+16(FP), Y2
	MOVQ         gain+24(FP), DI
	MOVQ         shift+32(FP), BX

stretchLoop:
	VMULPS  (SI), Y2, Y0
	VMULPS  (DI), Y0, Y0
	VADDPS  (BX), Y0, Y0
	VMOVUPS Y0, (SI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	ADDQ    $32, BX
	SUBQ    $8, CX
	JNZ     stretchLoop
	VZEROUPPER
	RET

// func cpuid(leaf, sub uint32) (ax, bx, cx, dx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, ax+8(FP)
	MOVL BX, bx+12(FP)
	MOVL CX, cx+16(FP)
	MOVL DX, dx+20(FP)
	RET

// func saved() uint32
TEXT ·saved(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, ret+0(FP)
	RET
