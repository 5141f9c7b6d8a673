//! Scratch.
#![allow(clippy::print_stdout, reason = "scratch")]
fn main() {
    let f = std::env::args().nth(1).unwrap();
    let src = std::fs::read_to_string(&f).unwrap();
    let m = carbyne_ir::text::parse(&src).unwrap();
    let table = carbyne_atoms::AtomTable::new("sm_80".parse().unwrap());
    let t = std::time::Instant::now();
    match carbyne_decompose::decompose(&m, &src, &table) {
        Ok(d) => { println!("{}", d.text); eprintln!("{:?}", t.elapsed()); }
        Err(e) => for d in e.iter() { println!("{d} {:?}\n label {}\n help {:?}\n notes {:?}", d.span.line_col(&src), d.label, d.help, d.notes); },
    }
}
