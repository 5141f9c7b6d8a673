//! Scratch.
#![allow(clippy::print_stdout, reason = "scratch")]
fn main() {
    let f = std::env::args().nth(1).unwrap();
    let arch = std::env::args().nth(2).unwrap_or("sm_80".into());
    let src = std::fs::read_to_string(&f).unwrap();
    let show = |e: &carbyne_ir::diag::Diagnostics| for d in e.iter() { println!("{d} {:?}\n label {}\n help {:?}\n notes {:?}", d.span.line_col(&src), d.label, d.help, d.notes); };
    let m = match carbyne_ir::text::parse(&src) { Ok(m) => m, Err(e) => return show(&e) };
    let table = carbyne_atoms::AtomTable::new(arch.parse().unwrap());
    let t = std::time::Instant::now();
    match carbyne_decompose::decompose(&m, &src, &table) {
        Ok(d) => { println!("{}", d.text); eprintln!("{:?}", t.elapsed()); }
        Err(e) => show(&e),
    }
}
