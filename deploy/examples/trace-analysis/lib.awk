# What the reduce tasks share. Records come sorted by key and value; the values
# of one key are collected in v[1..n].

# int0 writes a whole number in full, however large.
function int0(x) { return sprintf("%.0f", x) }

# div is a/b for whole a >= 0 and b > 0, rounded half up.
function div(a, b) { return int((2 * a + b) / (2 * b)) }

# quantile is the value at permille q by nearest rank, of v[1..n] in order.
function quantile(q) { return v[int((q * n + 999) / 1000)] }

# header is written once, by the first task of the stage.
function header(text) { if (task == 0) print text }
