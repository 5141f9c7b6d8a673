//! Tests the comparison of a device's memory with meanings: the results of the simulator pass it,
//! other results fail.

use crate::support;
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::Code;
use carbyne_simulate::device::{Images, POISON, Trial};
use carbyne_simulate::{Inputs, Options, simulate};

/// Rows of %C are 16 scalars apart: half of its memory has no element.
const TEXT: &str = "carbyne 2
%A:[8,4].f16.GL
%B:[4,8].f16.GL
%C:[(8,8):(16,1)].f32.GL
%D:[8,8].f32.GL
MatMul @sum (%A, %B) -> (%C) acc=f32
Move @copy (%C) -> (%D)
";

#[test]
fn only_results_of_the_simulator_pass() {
    let program = support::program(TEXT);
    let table = AtomTable::new(Arch::Sm80);
    for inputs in [Inputs::Seed(3), Inputs::Ints(3)] {
        let options = Options { inputs, ..Options::default() };
        let outputs = simulate(&program, &table, &options).unwrap().outputs;
        let value = |name: &str, i: i64, j: i64| outputs.element(name, &[i, j]).unwrap() as u32;
        let mut trial = Trial::new(&program, &table, &options).unwrap();
        let [sum, copy] = program.kernels[..] else { panic!("two kernels") };
        let [_, _, c, d] = program.params[..] else { panic!("four tensors") };
        assert_eq!((trial.multiply_adds(sum), trial.bytes_moved(copy)), (256, 512));

        let mut image = trial.image(c).unwrap();
        assert_eq!(image.len(), (7 * 16 + 8) * 4);
        assert!(image[8 * 4..16 * 4].iter().all(|b| *b == POISON));
        for (i, j) in (0..8).flat_map(|i| (0..8).map(move |j| (i, j))) {
            let at = (16 * i + j) as usize * 4;
            image[at..at + 4].copy_from_slice(&value("C", i, j).to_le_bytes());
        }
        let judge = |trial: &Trial<'_>, image: &[u8], most| {
            trial.judge(sum, &Images::from([(c, image.to_vec())]), most)
        };
        let judged = judge(&trial, &image, None).unwrap();
        assert_eq!((judged.elements, judged.compared), (64, 64));
        assert!(judge(&trial, &image, Some(9)).unwrap().compared <= 9);

        let mut wrong = image.clone();
        wrong[(16 * 2 + 5) * 4 + 3] ^= 0x40;
        let e = judge(&trial, &wrong, None).unwrap_err();
        assert!(e.code == Code::WrongElement && e.message.contains("%C[2,5] is"), "{e}");
        assert_eq!(e.notes, ["1 of 64 elements compared are wrong"]);
        wrong = image.clone();
        wrong[9 * 4] = 0;
        assert_eq!(judge(&trial, &wrong, None).unwrap_err().code, Code::SimOutOfBounds);
        wrong = vec![POISON; image.len()];
        let e = judge(&trial, &wrong, None).unwrap_err();
        assert!(e.notes.iter().any(|n| n.contains("no thread wrote it")), "{e:?}");

        // The second kernel reads the results of the first.
        trial.advance(Images::from([(c, image.clone())]));
        assert_eq!(trial.image(c).as_ref(), Some(&image));
        let copied: Vec<u8> = image.chunks(64).flat_map(|row| row[..32].to_vec()).collect();
        let after = Images::from([(d, copied)]);
        assert_eq!(trial.judge(copy, &after, None).unwrap().compared, 64);
        trial.advance(after);
        let array = trial.into_outputs().get("D").unwrap();
        assert_eq!(array.values[8 + 3] as u32, value("C", 1, 3));
    }
}
