#include "textflag.h"

// The assembler has no names for these: multiplying the lower or upper four
// halfwords of n by one of m, added to words; widening bytes to halfwords; and the
// multiplication and addition of floats, each rounded by itself.
#define SMLAL(d, n, m, i) WORD $(0x0F402000 + (((i)>>2)<<11) + ((((i)>>1)&1)<<21) + (((i)&1)<<20) + ((m)<<16) + ((n)<<5) + (d))
#define SMLAL2(d, n, m, i) WORD $(0x4F402000 + (((i)>>2)<<11) + ((((i)>>1)&1)<<21) + (((i)&1)<<20) + ((m)<<16) + ((n)<<5) + (d))
#define SXTL(d, n) WORD $(0x0F08A400 + ((n)<<5) + (d))
#define SXTL2(d, n) WORD $(0x4F08A400 + ((n)<<5) + (d))
#define FMUL(d, n, m) WORD $(0x6E20DC00 + ((m)<<16) + ((n)<<5) + (d))
#define FADD(d, n, m) WORD $(0x4E20D400 + ((m)<<16) + ((n)<<5) + (d))

// Input i of a row in register x, with its 16 weights in low and high.
#define DOT(sum, low, high, x, i) \
	SMLAL(sum, low, x, i);        \
	SMLAL2((sum+1), low, x, i);   \
	SMLAL((sum+2), high, x, i);   \
	SMLAL2((sum+3), high, x, i)

// Two inputs of four rows.
#define DOTS(i) \
	VLD2.P 32(R4), [V4.B16, V5.B16]; \
	SXTL(6, 4);                 \
	SXTL2(7, 4);                \
	SXTL(8, 5);                 \
	SXTL2(9, 5);                \
	DOT(16, 6, 7, 0, i);        \
	DOT(20, 6, 7, 1, i);        \
	DOT(24, 6, 7, 2, i);        \
	DOT(28, 6, 7, 3, i);        \
	DOT(16, 8, 9, 0, (i+1));    \
	DOT(20, 8, 9, 1, (i+1));    \
	DOT(24, 8, 9, 2, (i+1));    \
	DOT(28, 8, 9, 3, (i+1))

#define CLEAR(a, b, c, d) \
	VEOR a.B16, a.B16, a.B16; \
	VEOR b.B16, b.B16, b.B16; \
	VEOR c.B16, c.B16, c.B16; \
	VEOR d.B16, d.B16, d.B16

// func sums4(x0, x1, x2, x3 *int16, w *byte, in int, sums *[4][16]int32)
TEXT ·sums4(SB), NOSPLIT, $0-56
	MOVD x0+0(FP), R0
	MOVD x1+8(FP), R1
	MOVD x2+16(FP), R2
	MOVD x3+24(FP), R3
	MOVD w+32(FP), R4
	MOVD in+40(FP), R5
	MOVD sums+48(FP), R6
	CLEAR(V16, V17, V18, V19)
	CLEAR(V20, V21, V22, V23)
	CLEAR(V24, V25, V26, V27)
	CLEAR(V28, V29, V30, V31)

sums4loop:
	VLD1.P 16(R0), [V0.H8]
	VLD1.P 16(R1), [V1.H8]
	VLD1.P 16(R2), [V2.H8]
	VLD1.P 16(R3), [V3.H8]
	DOTS(0)
	DOTS(2)
	DOTS(4)
	DOTS(6)
	SUBS   $8, R5, R5
	BNE    sums4loop
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(R6)
	VST1.P [V20.S4, V21.S4, V22.S4, V23.S4], 64(R6)
	VST1.P [V24.S4, V25.S4, V26.S4, V27.S4], 64(R6)
	VST1.P [V28.S4, V29.S4, V30.S4, V31.S4], 64(R6)
	RET

// A number of a, in all lanes of V8, times 16 of b.
#define TIMES(s) \
	FMUL(4, 0, 8);    \
	FMUL(5, 1, 8);    \
	FMUL(6, 2, 8);    \
	FMUL(7, 3, 8);    \
	FADD(s, s, 4);    \
	FADD((s+1), (s+1), 5); \
	FADD((s+2), (s+2), 6); \
	FADD((s+3), (s+3), 7)

// func product2(c *float32, cstride int, a *float32, astride int, b *float32, bstride int, k int)
TEXT ·product2(SB), NOSPLIT, $0-56
	MOVD c+0(FP), R0
	MOVD cstride+8(FP), R1
	MOVD a+16(FP), R2
	MOVD astride+24(FP), R3
	MOVD b+32(FP), R4
	MOVD bstride+40(FP), R5
	MOVD k+48(FP), R6
	LSL  $2, R1, R1
	LSL  $2, R5, R5
	ADD  R3<<2, R2, R3
	CLEAR(V16, V17, V18, V19)
	CLEAR(V20, V21, V22, V23)

product2loop:
	VLD1    (R4), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1R.P 4(R2), [V8.S4]
	TIMES(16)
	VLD1R.P 4(R3), [V8.S4]
	TIMES(20)
	ADD     R5, R4, R4
	SUBS    $1, R6, R6
	BNE     product2loop
	VST1    [V16.S4, V17.S4, V18.S4, V19.S4], (R0)
	ADD     R1, R0, R0
	VST1    [V20.S4, V21.S4, V22.S4, V23.S4], (R0)
	RET
