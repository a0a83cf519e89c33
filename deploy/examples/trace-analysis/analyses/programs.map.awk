# What runs again and again: the runtime of each job of a program.
program >= 0 { emit(program, program " " run " " user) }
