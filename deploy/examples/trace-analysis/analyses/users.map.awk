# Who used the machine: jobs and processor-seconds of each user.
{ count[user]++; used[user] += procs * run }
END { for (u in count) emit(u, u " " count[u] " " int0(used[u])) }
