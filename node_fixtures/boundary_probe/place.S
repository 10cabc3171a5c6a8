/* Moves the code that is linked next to a place in a page: the same code is faster in some places than in others. */
	.text
	.p2align 12
	.skip SQLITE_PLACE
#if defined(__linux__) && defined(__ELF__)
	.section .note.GNU-stack, "", %progbits
#endif
