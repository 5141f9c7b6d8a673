//! The `carbyne` binary: see the library of the same name.

use std::io::{self, IsTerminal};

/// Decompose makes and drops many small values: with the allocator of the C library it takes a fifth longer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    carbyne::catch_panics_quietly();
    let code = carbyne::run_on(
        std::env::args_os(),
        &mut carbyne::Io {
            stdin: &mut io::stdin(),
            stdout: &mut io::BufWriter::new(io::stdout().lock()),
            stderr: &mut io::stderr(),
            color: carbyne::wants_color(&io::stderr()),
            allow_import: vec![],
            strategies: vec![],
            progress: io::stderr().is_terminal(),
            stdout_color: carbyne::wants_color(&io::stdout()),
        },
    );
    std::process::exit(code);
}
