#include "textflag.h"

// func vfork(l *Launch) (pid uintptr)
//
// The child has a stack of its own, and never returns.
TEXT ·vfork(SB),NOSPLIT,$0-16
	CALL	runtime·entersyscall(SB)
	MOVQ	l+0(FP), R12
	MOVQ	0(R12), AX
	MOVQ	8(R12), DI
	MOVQ	16(R12), SI
	MOVQ	24(R12), DX
	MOVQ	32(R12), R10
	MOVQ	40(R12), R8
	SYSCALL
	TESTQ	AX, AX
	JZ	child
	MOVQ	AX, pid+8(FP)
	CALL	runtime·exitsyscall(SB)
	RET

child:
	MOVQ	48(R12), R13 // steps
	MOVQ	56(R12), BX  // how many
next:
	TESTQ	BX, BX
	JZ	exit
	MOVQ	0(R13), AX
	MOVQ	8(R13), DI
	MOVQ	16(R13), SI
	MOVQ	24(R13), DX
	MOVQ	32(R13), R10
	MOVQ	40(R13), R8
	SYSCALL
	CMPQ	AX, $0xfffffffffffff001
	JCS	done
	CMPQ	56(R13), $0 // may it fail?
	JEQ	done
	NEGQ	AX
	MOVQ	AX, 64(R12) // errno
	JMP	exit
done:
	ADDQ	$64, R13
	DECQ	BX
	JMP	next
exit:
	MOVQ	$231, AX // exit_group
	MOVQ	$253, DI
	SYSCALL
	JMP	exit
