//! Starts the `carbyne` binary. It calls the library of the same name, which contains all code.

use std::io::{self, IsTerminal};

/// The solver allocates and frees many small values. It takes 20 % longer with the allocator of
/// the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    carbyne::catch_panics_quietly();
    let code = carbyne::run_on(
        std::env::args_os(),
        &mut carbyne::Io {
            color: carbyne::wants_color(&io::stderr()),
            own_stdin: true,
            progress: io::stderr().is_terminal(),
            stdout_color: carbyne::wants_color(&io::stdout()),
            ..carbyne::Io::plain(
                &mut io::stdin(),
                &mut io::BufWriter::new(io::stdout().lock()),
                &mut io::stderr(),
            )
        },
    );
    std::process::exit(code);
}
