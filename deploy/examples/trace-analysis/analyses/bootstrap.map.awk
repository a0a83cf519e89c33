# How sure is the mean wait? The waits, for all reduce tasks alike.
{ emit(0, wait " " 0) }
