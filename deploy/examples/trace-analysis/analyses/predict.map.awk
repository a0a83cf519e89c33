# Can a runtime be told from the past? What is needed to find out, by user and
# in the order of submission.
asked > 0 { emit(user, user " " $1 " " run " " asked) }
