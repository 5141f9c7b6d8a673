//! Lists the names of the functions over tensors (`exp`, `sum`, `matmul`, ..), which messages about
//! unknown or misspelled functions suggest.

/// The functions that expressions can call, for messages.
pub(super) const FUNCTIONS: [&str; 36] = [
    "cast", "exp", "exp2", "log", "sqrt", "rsqrt", "rcp", "tanh", "sigmoid", "relu", "gelu",
    "silu", "abs", "min", "max", "minimum", "maximum", "sum", "prod", "and", "or", "xor", "select",
    "matmul", "move", "neg", "add", "sub", "mul", "div", "lt", "le", "eq", "ne", "ge", "gt",
];
