#include "textflag.h"

// func vfork(l *Launch) (pid uintptr)
//
// The child has a stack of its own, and never returns.
TEXT ·vfork(SB),NOSPLIT,$0-16
	BL	runtime·entersyscall(SB)
	MOVD	l+0(FP), R19
	MOVD	0(R19), R8
	MOVD	8(R19), R0
	MOVD	16(R19), R1
	MOVD	24(R19), R2
	MOVD	32(R19), R3
	MOVD	40(R19), R4
	SVC
	CBZ	R0, child
	MOVD	R0, pid+8(FP)
	BL	runtime·exitsyscall(SB)
	RET

child:
	MOVD	48(R19), R20 // steps
	MOVD	56(R19), R21 // how many
next:
	CBZ	R21, exit
	MOVD	0(R20), R8
	MOVD	8(R20), R0
	MOVD	16(R20), R1
	MOVD	24(R20), R2
	MOVD	32(R20), R3
	MOVD	40(R20), R4
	SVC
	CMN	$4095, R0
	BCC	done
	MOVD	56(R20), R9 // may it fail?
	CBZ	R9, done
	NEG	R0, R0
	MOVD	R0, 64(R19) // errno
	B	exit
done:
	ADD	$64, R20
	SUB	$1, R21
	B	next
exit:
	MOVD	$94, R8 // exit_group
	MOVD	$253, R0
	SVC
	B	exit
